-- name: Manifest :one
SELECT manifest FROM manifests WHERE digest = @digest;

-- name: KeepManifest :exec
INSERT INTO manifests (digest, provider, manifest, kept_at) VALUES (@digest, @provider, @manifest, @kept_at)
ON CONFLICT (digest) DO NOTHING;

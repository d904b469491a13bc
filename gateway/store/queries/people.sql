-- name: PersonByEmail :one
SELECT person_id, email, name, password, totp, totp_step, epoch, failures, failed_at, created_at, vouched_as, language, fresh_codes FROM people
WHERE email = @email;

-- name: PersonByID :one
SELECT person_id, email, name, password, totp, totp_step, epoch, failures, failed_at, created_at, vouched_as, language, fresh_codes FROM people
WHERE person_id = @person_id;

-- name: InsertPerson :exec
INSERT INTO people (person_id, email, name, password, totp, totp_step, epoch, failures, failed_at, created_at, language, fresh_codes)
VALUES (@person_id, @email, @name, @password, @totp, @totp_step, 1, 0, @created_at, @created_at, @language, sqlc.narg(fresh_codes));

-- name: InsertRecoveryCodes :exec
INSERT INTO recovery_codes (person_id, hash)
SELECT @person_id::UUID, code.hash FROM unnest(@hashes::BYTEA[]) AS code (hash);

-- name: DeleteRecoveryCodes :exec
DELETE FROM recovery_codes WHERE person_id = @person_id;

-- name: UseRecoveryCode :execrows
DELETE FROM recovery_codes WHERE person_id = @person_id AND hash = @hash;

-- name: CountRecoveryCodes :one
SELECT count(*) FROM recovery_codes WHERE person_id = @person_id;

-- name: UseStep :execrows
UPDATE people SET totp_step = @totp_step WHERE person_id = @person_id AND totp_step < @totp_step;

-- name: TakeAttempt :execrows
-- Counts an attempt before it is judged: of several at once no more than the limit are.
-- An attempt an hour after the last one is the first again.
UPDATE people SET failures = CASE WHEN failed_at < @forgotten THEN 1 ELSE failures + 1 END, failed_at = @failed_at
WHERE person_id = @person_id AND (failures < @most OR failed_at < @waited);

-- name: ForgetSignInFailures :exec
UPDATE people SET failures = 0 WHERE person_id = @person_id AND failures > 0;

-- name: SetPassword :execrows
UPDATE people SET password = @password, epoch = epoch + 1 WHERE person_id = @person_id AND epoch = @epoch;

-- name: SetFactor :execrows
UPDATE people SET totp = @totp, totp_step = @totp_step, epoch = epoch + 1 WHERE person_id = @person_id AND epoch = @epoch;

-- name: LinkAccount :execrows
UPDATE people SET vouched_as = @vouched_as WHERE person_id = @person_id AND vouched_as = '';

-- name: UnlinkAccount :execrows
UPDATE people SET vouched_as = '' WHERE person_id = @person_id AND vouched_as <> '';

-- name: EndSessions :exec
UPDATE people SET epoch = epoch + 1 WHERE person_id = @person_id;

-- name: EndSessionsOf :exec
UPDATE people SET epoch = epoch + 1
WHERE person_id IN (SELECT m.person_id FROM members AS m WHERE m.merchant_id = @merchant_id);

-- name: DeletePerson :execrows
DELETE FROM people WHERE person_id = @person_id;

-- name: DeleteMemberships :exec
DELETE FROM members WHERE person_id = @person_id;

-- name: InsertMember :execrows
INSERT INTO members (merchant_id, person_id, role, since) VALUES (@merchant_id, @person_id, @role, @since)
ON CONFLICT (merchant_id, person_id) DO NOTHING;

-- name: SetRole :execrows
UPDATE members SET role = @role WHERE merchant_id = @merchant_id AND person_id = @person_id;

-- name: DeleteMember :execrows
DELETE FROM members WHERE merchant_id = @merchant_id AND person_id = @person_id;

-- name: MembersOf :many
SELECT m.person_id, m.role, m.since, p.email, p.name, p.language FROM members AS m
JOIN people AS p ON p.person_id = m.person_id
WHERE m.merchant_id = @merchant_id
ORDER BY m.since, p.email;

-- name: MembershipsOf :many
SELECT m.merchant_id, m.role, m.since, t.name, t.status FROM members AS m
JOIN merchants AS t ON t.merchant_id = m.merchant_id
WHERE m.person_id = @person_id
ORDER BY t.name, m.merchant_id;

-- name: InsertInvitation :exec
INSERT INTO invitations (hash, merchant_id, role, email, invited_by, expires_at, mail_id)
VALUES (@hash, @merchant_id, @role, @email, @invited_by, @expires_at, sqlc.narg(mail_id));

-- name: InvitationsOf :many
SELECT i.role, i.email, i.invited_by, i.expires_at, coalesce(m.state, '')::TEXT AS mail FROM invitations AS i
LEFT JOIN mails AS m ON m.mail_id = i.mail_id
WHERE i.merchant_id = @merchant_id AND i.expires_at > @now
ORDER BY i.expires_at DESC, i.email;

-- name: RevokeInvitations :many
DELETE FROM invitations WHERE merchant_id = @merchant_id AND email = @email RETURNING mail_id;

-- name: Invitation :one
SELECT hash, merchant_id, role, email, invited_by, expires_at FROM invitations WHERE hash = @hash;

-- name: TakeInvitation :one
DELETE FROM invitations WHERE hash = @hash RETURNING mail_id;

-- name: WithdrawInvitations :many
-- What somebody was invited to at a merchant, or has invited others to; at all where it is ''.
DELETE FROM invitations
WHERE (email = @email OR invited_by = @invited_by) AND (merchant_id = @merchant_id OR @merchant_id = '')
RETURNING merchant_id, email, mail_id;

-- name: ForgetInvitations :exec
DELETE FROM invitations WHERE expires_at < @before;

-- name: SealedTOTPs :many
SELECT person_id, totp FROM people ORDER BY person_id;

-- name: ResealTOTP :execrows
UPDATE people SET totp = @becomes WHERE person_id = @person_id AND totp = @was;

-- name: InsertReset :exec
INSERT INTO resets (hash, person_id, expires_at) VALUES (@hash, @person_id, @expires_at);

-- name: ResetsSince :one
SELECT count(*) FROM resets WHERE person_id = @person_id AND expires_at > @expires_at;

-- name: Reset :one
SELECT hash, person_id, expires_at FROM resets WHERE hash = @hash;

-- name: DeleteResets :many
DELETE FROM resets WHERE person_id = @person_id RETURNING hash;

-- name: ForgetResets :exec
DELETE FROM resets WHERE expires_at < @before;

-- name: SetFreshCodes :exec
UPDATE people SET fresh_codes = sqlc.narg(fresh_codes) WHERE person_id = @person_id;

-- name: Session :one
SELECT content FROM sessions WHERE token_hash = @token_hash AND expires_at > @now AND length(content) > 0;

-- name: PutSession :exec
-- One that was ended stays so, whatever a request of before still writes.
INSERT INTO sessions (token_hash, content, expires_at) VALUES (@token_hash, @content, @expires_at)
ON CONFLICT (token_hash) DO UPDATE SET content = excluded.content, expires_at = excluded.expires_at
WHERE length(sessions.content) > 0;

-- name: EndSession :exec
UPDATE sessions SET content = ''::BYTEA WHERE token_hash = @token_hash;

-- name: ForgetSessions :execrows
DELETE FROM sessions WHERE token_hash IN (
    SELECT s.token_hash FROM sessions AS s WHERE s.expires_at < @before ORDER BY s.expires_at LIMIT @most
);

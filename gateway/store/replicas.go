package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/policy"
)

// rememberReplicas is how long a gateway that has ended is remembered.
const rememberReplicas = 30 * 24 * time.Hour

// schemas is how many versions share a baseline. Versions from a baseline to the next
// only add, so a gateway works on every schema from its own newest version to the end
// of its thousand.
const schemas = 1000

// Probe tells whether a replica can do its work on this database: the schema is one that
// it knows, a commit is taken, and none of this replica's was refused a moment ago for
// what ails the database. A database that is full, read-only or behind a
// broken disk answers reads all the same. The problem is for whoever may ask, "" where
// there is none; its cause is for the log.
func (s *Store) Probe(ctx context.Context, replica uuid.UUID, now time.Time) (problem string, cause error) {
	problem, cause = s.probe(ctx, replica, now)
	s.problem.Store(&problem)
	switch told := cause == nil || hasCode(cause, readOnly) || unable(cause); {
	case problem == "":
		s.unfit.Store(nil)
	case told:
		s.unfit.Store(new(fmt.Errorf("the database %s", problem)))
	}
	return problem, cause
}

// Problem is that of the last [Store.Probe], also where the database did not answer; ""
// where there was none.
func (s *Store) Problem() string {
	if problem := s.problem.Load(); problem != nil {
		return *problem
	}
	return ""
}

// Unfit is why nothing that moves money can be written, as the last [Store.Probe] had it
// from the database itself: a schema of another version, or that it takes no writes. That
// it did not answer in time changes nothing: whoever asks next finds out.
func (s *Store) Unfit() error {
	if unfit := s.unfit.Load(); unfit != nil {
		return *unfit
	}
	return nil
}

func (s *Store) probe(ctx context.Context, replica uuid.UUID, now time.Time) (problem string, cause error) {
	if problem, cause = s.Schema(ctx); problem != "" {
		return problem, cause
	}
	if err := s.see(ctx, replica, now); err != nil {
		return "takes no writes", err
	}
	if broken := s.writer.broken.Load(); broken != nil && time.Since(broken.at) < brokenFor {
		return "takes no writes", broken.err
	}
	return "", nil
}

// see writes that a replica was seen, also before its first report.
func (s *Store) see(ctx context.Context, replica uuid.UUID, now time.Time) error {
	rows, err := s.queries.SeeReplica(ctx, dbsqlc.SeeReplicaParams{ReplicaID: replica, SeenAt: micro(now)})
	if err != nil || rows > 0 {
		return err
	}
	return s.ReportReplica(ctx, Replica{ID: replica, StartedAt: now, SeenAt: now})
}

// Schema tells what is wrong with a database's schema, "" where this version of the
// gateway knows it.
func (s *Store) Schema(ctx context.Context) (problem string, cause error) {
	var version int64
	err := s.pool.QueryRow(ctx, "SELECT version_id FROM goose_db_version WHERE is_applied ORDER BY version_id DESC LIMIT 1").Scan(&version)
	pgErr, refused := errors.AsType[*pgconn.PgError](err)
	switch {
	case refused && pgErr.Code == undefinedTable, errors.Is(err, pgx.ErrNoRows):
		return "has no tables of a gateway", nil
	case err != nil:
		return "does not answer", err
	}
	s.schema.Store(version)
	return knows(version), nil
}

// liveFor is how long after its last trace a gateway is taken to run.
const liveFor = 30 * time.Second

// Replica is a gateway that runs, or has run, on this database.
type Replica struct {
	ID        uuid.UUID
	Tag       uint16         // names it where there is no room for the id
	Host      string         // its machine
	Policy    policy.Version // that it runs, "" for a gateway of before, which follows none
	Binary    string
	StartedAt time.Time
	SeenAt    time.Time
	EndedAt   time.Time         // zero unless it said so
	Plugins   map[string]string // the SHA-256 of each, by provider, "" for one that is down
	Files     []string          // the SHA-256 of each file in its directory of plugins

	// SchemaFrom is the first schema that it works on, SchemaBelow the first later one
	// that it does not.
	SchemaFrom, SchemaBelow int64
}

// Live tells whether a gateway runs, as far as the database shows: a gateway that was
// killed is live until its last heartbeat is 30 s old.
func (r Replica) Live(now time.Time) bool { return r.EndedAt.IsZero() && now.Sub(r.SeenAt) < liveFor }

// Told tells whether a gateway has said what it runs, which it does once it serves.
func (r Replica) Told() bool { return r.Policy != "" }

// Down tells whether a plugin that the gateway should run is down there.
func (r Replica) Down(provider string) bool {
	digest, configured := r.Plugins[provider]
	return configured && digest == ""
}

// ReportReplica writes what a gateway says of itself, which is also its heartbeat. The
// schemas that it works on are those of this version.
func (s *Store) ReportReplica(ctx context.Context, r Replica) error {
	plugins, err := json.Marshal(r.Plugins)
	if err != nil {
		return fmt.Errorf("store: report replica: %w", err)
	}
	files, err := json.Marshal(r.Files)
	if err != nil {
		return fmt.Errorf("store: report replica: %w", err)
	}
	return wrap("report replica", s.queries.ReportReplica(ctx, dbsqlc.ReportReplicaParams{
		ReplicaID: r.ID, StartedAt: micro(r.StartedAt), SeenAt: micro(r.SeenAt), PolicyVersion: string(r.Policy), BinaryVersion: r.Binary,
		SchemaFrom: newest, SchemaBelow: beyond(), Plugins: string(plugins), PluginFiles: string(files), Host: r.Host, Tag: int64(r.Tag),
	}))
}

// EndReplica says that a gateway ends, so that nobody waits for it.
func (s *Store) EndReplica(ctx context.Context, id uuid.UUID, now time.Time) error {
	return wrap("end replica", s.queries.EndReplica(ctx, dbsqlc.EndReplicaParams{ReplicaID: id, EndedAt: new(micro(now))}))
}

// LiveReplicas lists the gateways that run, the oldest first.
func (s *Store) LiveReplicas(ctx context.Context, now time.Time) ([]Replica, error) {
	seen, err := s.ReplicasSeen(ctx, now.Add(-liveFor))
	return slices.DeleteFunc(seen, func(r Replica) bool { return !r.Live(now) }), err
}

// ReplicasSeen lists the gateways with a heartbeat since a time, the oldest first, also
// those that have ended.
func (s *Store) ReplicasSeen(ctx context.Context, since time.Time) ([]Replica, error) {
	rows, err := s.queries.ReplicasSeen(ctx, micro(since))
	if err != nil {
		return nil, fmt.Errorf("store: replicas: %w", err)
	}
	replicas := make([]Replica, len(rows))
	for i, row := range rows {
		replicas[i] = Replica{
			ID: row.ReplicaID, Tag: uint16(row.Tag), Host: row.Host, Policy: policy.Version(row.PolicyVersion), Binary: row.BinaryVersion, //nolint:gosec // of 16 bits
			StartedAt: row.StartedAt.UTC(), SeenAt: row.SeenAt.UTC(), EndedAt: orZero(row.EndedAt), SchemaFrom: row.SchemaFrom, SchemaBelow: row.SchemaBelow,
		}
		if err := json.Unmarshal([]byte(row.Plugins), &replicas[i].Plugins); err != nil {
			return nil, fmt.Errorf("store: replicas: %w", err)
		}
		if err := json.Unmarshal([]byte(row.PluginFiles), &replicas[i].Files); err != nil {
			return nil, fmt.Errorf("store: replicas: %w", err)
		}
	}
	return replicas, nil
}

// ForgetReplicas removes gateways that ended long ago.
func (s *Store) ForgetReplicas(ctx context.Context, now time.Time) error {
	return s.queries.ForgetReplicas(ctx, micro(now.Add(-rememberReplicas)))
}

// knows tells what is wrong with a schema for this version of the gateway.
func knows(version int64) (problem string) {
	switch next := beyond(); {
	case version < newest:
		return fmt.Sprintf("has the schema %d, and this version of the gateway needs %d: run gerbang migrate", version, newest)
	case version >= next:
		return fmt.Sprintf("has the schema %d, of a later version of the gateway: this one works on those below %d", version, next)
	}
	return ""
}

// beyond is the first schema after the newest that this version does not work on.
func beyond() int64 { return newest - newest%schemas + schemas }

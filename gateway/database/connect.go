package database

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The oldest versions that the SQL is written for.
const (
	minPostgres        = 15
	minCockroachMajor  = 24
	minCockroachMinor  = 3
	connectPatience    = 10 * time.Second
	codeNoDatabase     = "3D000" // invalid_catalog_name
	codeDatabaseExists = "42P04" // duplicate_database
)

var (
	cockroachVersion = regexp.MustCompile(`v(\d+)\.(\d+)`)
	postgresVersion  = regexp.MustCompile(`^(\d+)`)
)

// endpoint is a database that answered.
type endpoint struct {
	url    string
	engine Engine
}

// openURL connects to a server that somebody else runs.
func openURL(ctx context.Context, o Options, raw, source string) (*Server, error) {
	defer o.awaiting("waiting for the database at " + source)()
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	at, err := connect(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("database: %s: %w", source, err)
	}
	if o.Engine != "" && o.Engine != at.engine {
		return nil, fmt.Errorf("database: %s leads to %s, but %s was asked for", source, at.engine, o.Engine)
	}
	closing := make(chan struct{})
	return &Server{url: at.url, engine: at.engine, source: source, done: closing, closing: closing}, nil
}

// connect makes sure that the database of the URL exists (Name, when it has none) on a server new enough.
func connect(ctx context.Context, raw string) (endpoint, error) {
	name, err := databaseOf(raw)
	if err != nil {
		return endpoint{}, err
	}
	if name == "" {
		name = databaseName
		raw = withDatabase(raw, name)
	}
	conn, err := pgx.Connect(ctx, raw)
	if code(err) == codeNoDatabase {
		if err := createDatabase(ctx, withDatabase(raw, "postgres"), name); err != nil {
			return endpoint{}, err
		}
		conn, err = pgx.Connect(ctx, raw)
	}
	if err != nil {
		return endpoint{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	parameter := conn.PgConn().ParameterStatus
	if err := checkVersion(parameter); err != nil {
		return endpoint{}, &finalError{err}
	}
	at := endpoint{url: raw, engine: engineOf(parameter)}
	if at.engine == CockroachDB {
		// CockroachDB lets a session begin in a database that does not exist.
		create := "CREATE DATABASE IF NOT EXISTS " + pgx.Identifier{name}.Sanitize()
		if _, err := conn.PgConn().Exec(ctx, create).ReadAll(); err != nil {
			return endpoint{}, fmt.Errorf("create database %s: %w", name, err)
		}
	}
	return at, nil
}

// createDatabase makes a PostgreSQL database; that another process was first is no error.
func createDatabase(ctx context.Context, admin, name string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.PgConn().Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()).ReadAll()
	if err != nil && code(err) != codeDatabaseExists {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// checkVersion refuses a server that is too old; a version that can't be read is let through.
func checkVersion(parameter func(string) string) error {
	if text := parameter("crdb_version"); text != "" {
		return checkCockroach(text)
	}
	text := parameter("server_version")
	found := postgresVersion.FindString(text)
	if major, err := strconv.Atoi(found); err == nil && major < minPostgres {
		return fmt.Errorf("the server is PostgreSQL %s; %d or later is needed", text, minPostgres)
	}
	return nil
}

func checkCockroach(text string) error {
	found := cockroachVersion.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	if major < minCockroachMajor || major == minCockroachMajor && minor < minCockroachMinor {
		return fmt.Errorf("CockroachDB is %s; v%d.%d or later is needed", found[0], minCockroachMajor, minCockroachMinor)
	}
	return nil
}

// databaseOf names the database of a URL. Errors never quote the URL, which holds a password.
func databaseOf(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", errors.New("not a postgres:// URL")
	}
	if name := strings.TrimPrefix(u.Path, "/"); name != "" {
		return name, nil
	}
	return u.Query().Get("dbname"), nil
}

// withDatabase returns the URL with another database; raw has passed databaseOf.
func withDatabase(raw, name string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	u.Path, u.RawPath = "/"+name, ""
	if q := u.Query(); q.Has("dbname") {
		q.Del("dbname")
		u.RawQuery = q.Encode()
	}
	return u.String()
}

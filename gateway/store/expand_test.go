package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// released is the schema that gateways of the first release work with.
const released = "00500_baseline.sql"

// additions are the statements that a migration may consist of: one of them, in any
// case. What an older gateway writes and reads stays valid, so replicas of two versions
// work side by side.
var additions = []*regexp.Regexp{
	regexp.MustCompile(`^CREATE TABLE IF NOT EXISTS \w+ \(`),
	regexp.MustCompile(`^CREATE INDEX IF NOT EXISTS \w+ ON \w+ `),
	// NULL, or what older gateways' rows get by default; nothing else is asked of it.
	regexp.MustCompile(`^ALTER TABLE \w+ ADD COLUMN IF NOT EXISTS \w+ \w+(\[\])?( NULL)?( DEFAULT [^ ]+)?$`),
	regexp.MustCompile(`^ALTER TABLE \w+ ADD COLUMN IF NOT EXISTS \w+ \w+(\[\])? NOT NULL DEFAULT [^ ]+$`),
	regexp.MustCompile(`^ALTER TABLE \w+ ALTER COLUMN \w+ SET DEFAULT [^ ]+$`),
	// How full pages become is nobody's affair.
	regexp.MustCompile(`^ALTER TABLE \w+ SET \(fillfactor = \d+\)$`),
	// The first rows of a table that older gateways don't know.
	regexp.MustCompile(`^INSERT INTO \w+ \(.* ON CONFLICT (\([^)]*\) )?DO NOTHING$`),
}

var (
	dropCheck = regexp.MustCompile(`^ALTER TABLE (\w+) DROP CONSTRAINT IF EXISTS (\w+)$`)
	addCheck  = regexp.MustCompile(`^ALTER TABLE (\w+) ADD CONSTRAINT (\w+) CHECK \((.*)\)$`)
	loosen    = regexp.MustCompile(`^ALTER TABLE \w+ DROP CONSTRAINT IF EXISTS (\w+)$`)
	fill      = regexp.MustCompile(`^UPDATE (\w+) SET (\w+) = \w+ WHERE (\w+) = '' AND [^=]*$`)
	dropIndex = regexp.MustCompile(`^DROP INDEX CONCURRENTLY IF EXISTS (\w+)$`)
	addIndex  = regexp.MustCompile(`^CREATE INDEX CONCURRENTLY IF NOT EXISTS (\w+) ON (\w+) `)
	onTable   = regexp.MustCompile(`^(?:INSERT INTO|CREATE INDEX IF NOT EXISTS \w+ ON) (\w+) `)
	comment   = regexp.MustCompile(`--[^\n]*`)
	inList    = regexp.MustCompile(`IN \(([^()]*)\)`)
)

// statementsOf are the statements of a migration, each on one line.
func statementsOf(migration string) (statements []string) {
	for statement := range strings.SplitSeq(comment.ReplaceAllString(migration, ""), ";") {
		if text := strings.Join(strings.Fields(statement), " "); text != "" {
			statements = append(statements, text)
		}
	}
	return statements
}

// expands says what of a migration an older gateway may not survive. Earlier are the
// migrations before it.
func expands(migration, earlier string) error {
	statements := statementsOf(migration)
	switch {
	case !strings.Contains(migration, "-- +goose NO TRANSACTION"):
		return errors.New("it must say -- +goose NO TRANSACTION")
	case strings.Contains(migration, "-- +goose Down"):
		return errors.New("there is no way back from an expansion")
	case len(statements) == 2 && dropCheck.MatchString(statements[0]) && addCheck.MatchString(statements[1]):
		return widens(statements[0], statements[1], earlier)
	case len(statements) == 2 && dropIndex.MatchString(statements[0]) && addIndex.MatchString(statements[1]):
		return rebuilds(statements[0], statements[1], earlier)
	case len(statements) == 1 && loosen.MatchString(statements[0]):
		return loosens(statements[0])
	case len(statements) == 1 && fill.MatchString(statements[0]):
		return fills(statements[0], earlier)
	case len(statements) != 1:
		return fmt.Errorf("it has %d schema changes: each has a migration of its own", len(statements))
	}
	if !slices.ContainsFunc(additions, func(form *regexp.Regexp) bool { return form.MatchString(statements[0]) }) {
		return fmt.Errorf("%q is no addition: expand now, and contract once no older gateway runs", statements[0])
	}
	if on := onTable.FindStringSubmatch(statements[0]); on != nil {
		if baseline, _, _ := strings.Cut(earlier, endOfBaseline); strings.Contains(baseline, "CREATE TABLE IF NOT EXISTS "+on[1]+" (") {
			return fmt.Errorf("older gateways use %s: it writes no rows into it, and builds an index by DROP INDEX CONCURRENTLY IF EXISTS and "+
				"CREATE INDEX CONCURRENTLY IF NOT EXISTS, which keeps nobody from writing", on[1])
		}
	}
	return nil
}

// rebuilds says why an index that is dropped and built would not be the same one, or
// would be one that older gateways read by.
func rebuilds(drop, add, earlier string) error {
	name := dropIndex.FindStringSubmatch(drop)[1]
	switch {
	case addIndex.FindStringSubmatch(add)[1] != name:
		return errors.New("what is left of an index is dropped before it is built, and no other")
	case regexp.MustCompile(`INDEX (CONCURRENTLY )?IF NOT EXISTS ` + name + ` `).MatchString(earlier):
		return fmt.Errorf("older gateways read by the index %s", name)
	}
	return nil
}

// judged are the constraints whose refusals the store knows by name.
var judged = []string{"ledger_balances_available", "usage_ceiling", "reserved_amounts_free"}

// loosens says why a check must stay. What older gateways write passes without it, too.
func loosens(drop string) error {
	name := loosen.FindStringSubmatch(drop)[1]
	if slices.Contains(judged, name) || strings.HasSuffix(name, "_pkey") || strings.HasSuffix(name, "_balanced") {
		return fmt.Errorf("what %s refuses would be written", name)
	}
	return nil
}

// fills says why rows may not be filled in: only a column that no gateway of the baseline
// writes, where it still has its default.
func fills(update, earlier string) error {
	of := fill.FindStringSubmatch(update)
	_, later, _ := strings.Cut(earlier, endOfBaseline)
	if of[2] != of[3] || !strings.Contains(later, "ALTER TABLE "+of[1]+" ADD COLUMN IF NOT EXISTS "+of[2]+" ") {
		return fmt.Errorf("%s.%s is others', too", of[1], of[2])
	}
	return nil
}

// endOfBaseline stands between the baseline and the migrations after it.
const endOfBaseline = "\n-- end of the baseline\n"

// widens says why a constraint that replaces another would refuse more: but for longer
// lists of values it must be the same.
func widens(drop, add, earlier string) error {
	dropped, added := dropCheck.FindStringSubmatch(drop), addCheck.FindStringSubmatch(add)
	if dropped[1] != added[1] || dropped[2] != added[2] {
		return errors.New("a constraint is replaced by one of its own name")
	}
	before := ""
	for _, definition := range regexp.MustCompile(`CONSTRAINT `+added[2]+` CHECK \(`).FindAllStringIndex(earlier, -1) {
		before = enclosed(earlier[definition[1]:])
	}
	if before == "" {
		return fmt.Errorf("nothing before it is called %s", added[2])
	}
	was, is := inList.FindAllStringSubmatch(before, -1), inList.FindAllStringSubmatch(added[3], -1)
	if len(was) == 0 || inList.ReplaceAllString(before, "IN ()") != inList.ReplaceAllString(added[3], "IN ()") {
		return fmt.Errorf("%s is not the same with longer lists: it was %s", added[2], before)
	}
	for i := range was {
		values := strings.Split(is[i][1], ", ")
		for value := range strings.SplitSeq(was[i][1], ", ") {
			if !slices.Contains(values, value) {
				return fmt.Errorf("%s refuses %s, which was allowed", added[2], value)
			}
		}
	}
	return nil
}

// enclosed is the text up to the parenthesis that closes one before it.
func enclosed(text string) string {
	depth := 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')' && depth == 0:
			return text[:i]
		case r == ')':
			depth--
		}
	}
	return ""
}

// TestMigrationsOnlyExpand: replicas of the version before run on while a migration is
// applied, and after it.
func TestMigrationsOnlyExpand(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 || filepath.Base(files[0]) != released {
		t.Fatalf("%v, %v", files, err)
	}
	earlier := ""
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) != released {
			if err := expands(string(content), earlier); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		earlier += strings.Join(statementsOf(string(content)), ";\n") + ";\n"
		if filepath.Base(file) == released {
			earlier += endOfBaseline
		}
	}
}

func TestExpandsRefuses(t *testing.T) {
	t.Parallel()
	const head = "-- +goose NO TRANSACTION\n-- +goose Up\n-- Why: a reason; with a semicolon.\n"
	const earlier = "CREATE TABLE IF NOT EXISTS a ( b TEXT, CONSTRAINT a_b CHECK (b IN ('x', 'y') OR (b = '')));\n" +
		"CREATE INDEX IF NOT EXISTS a_c ON a (b);\n" + endOfBaseline +
		"CREATE TABLE IF NOT EXISTS d ( e TEXT );\n"
	for migration, allowed := range map[string]bool{
		"CREATE TABLE IF NOT EXISTS c (\n    d TEXT NOT NULL\n);":                                                                  true,
		"DROP INDEX CONCURRENTLY IF EXISTS c;\nCREATE INDEX CONCURRENTLY IF NOT EXISTS c ON a (b) WHERE b <> '';":                  true,
		"CREATE INDEX IF NOT EXISTS c ON d (e);":                                                                                   true,
		"ALTER TABLE a ADD COLUMN IF NOT EXISTS c TIMESTAMPTZ;":                                                                    true,
		"ALTER TABLE a ADD COLUMN IF NOT EXISTS c TEXT NOT NULL DEFAULT '';":                                                       true,
		"ALTER TABLE a ALTER COLUMN b SET DEFAULT clock_timestamp();":                                                              true,
		"INSERT INTO d (e) VALUES ('1') ON CONFLICT (e) DO NOTHING;":                                                               true,
		"ALTER TABLE a DROP CONSTRAINT IF EXISTS a_b;\nALTER TABLE a ADD CONSTRAINT a_b CHECK (b IN ('x', 'y', 'z') OR (b = ''));": true,

		"ALTER TABLE a DROP CONSTRAINT IF EXISTS a_b;\nALTER TABLE a ADD CONSTRAINT a_b CHECK (b IN ('x', 'z') OR (b = ''));": false,
		"ALTER TABLE a DROP CONSTRAINT IF EXISTS a_b;\nALTER TABLE a ADD CONSTRAINT a_b CHECK (b IN ('x', 'y', 'z'));":        false,
		"ALTER TABLE a DROP CONSTRAINT IF EXISTS a_b;\nALTER TABLE a ADD CONSTRAINT a_c CHECK (b IN ('x', 'y') OR (b = ''));": false,
		"ALTER TABLE a DROP CONSTRAINT IF EXISTS a_b;":                                                                        true,
		"ALTER TABLE a DROP CONSTRAINT IF EXISTS a_pkey;":                                                                     false,
		"ALTER TABLE a DROP CONSTRAINT IF EXISTS usage_ceiling;":                                                              false,
		"ALTER TABLE a SET (fillfactor = 60);":                                                                                true,
		"DROP INDEX CONCURRENTLY IF EXISTS a_c;":                                                                              false,
		"UPDATE a SET b = c WHERE b = '' AND c IN ('x');":                                                                     false,
		"ALTER TABLE a ADD CONSTRAINT a_c CHECK (b <> '');":                                                                   false,
		"DROP TABLE a;":                                                                                 false,
		"DROP INDEX IF EXISTS c;":                                                                       false,
		"ALTER TABLE a DROP COLUMN IF EXISTS b;":                                                        false,
		"ALTER TABLE a RENAME COLUMN b TO c;":                                                           false,
		"ALTER TABLE a RENAME TO c;":                                                                    false,
		"ALTER TABLE a ALTER COLUMN b SET NOT NULL;":                                                    false,
		"ALTER TABLE a ALTER COLUMN b TYPE INT8;":                                                       false,
		"ALTER TABLE a ALTER COLUMN b DROP DEFAULT;":                                                    false,
		"ALTER TABLE a ADD COLUMN IF NOT EXISTS c TEXT NOT NULL;":                                       false,
		"ALTER TABLE a ADD COLUMN IF NOT EXISTS c TEXT UNIQUE;":                                         false,
		"ALTER TABLE a ADD COLUMN IF NOT EXISTS c TEXT DEFAULT '' CHECK (c = '');":                      false,
		"ALTER TABLE a ADD COLUMN IF NOT EXISTS c TEXT, DROP COLUMN b;":                                 false,
		"CREATE UNIQUE INDEX IF NOT EXISTS c ON a (b);":                                                 false,
		"CREATE INDEX IF NOT EXISTS c ON a (b);":                                                        false,
		"CREATE INDEX CONCURRENTLY IF NOT EXISTS c ON a (b);":                                           false,
		"DROP INDEX CONCURRENTLY IF EXISTS a_c;\nCREATE INDEX CONCURRENTLY IF NOT EXISTS c ON a (b);":   false,
		"DROP INDEX CONCURRENTLY IF EXISTS a_c;\nCREATE INDEX CONCURRENTLY IF NOT EXISTS a_c ON a (b);": false,
		"CREATE INDEX c ON a (b);":                                                                      false,
		"UPDATE a SET b = 'x';":                                                                         false,
		"INSERT INTO a (b) VALUES ('x') ON CONFLICT DO NOTHING;":                                        false,
		"CREATE TABLE IF NOT EXISTS c (d TEXT);\nCREATE INDEX IF NOT EXISTS e ON c (d);":                false,
		"": false,
	} {
		if err := expands(head+migration, earlier); (err == nil) != allowed {
			t.Errorf("%s\nallowed %v, got %v", migration, allowed, err)
		}
	}
	if expands("-- +goose Up\nCREATE TABLE IF NOT EXISTS c (d TEXT);", earlier) == nil {
		t.Error("a migration in a transaction is let through")
	}
	if expands(head+"CREATE TABLE IF NOT EXISTS c (d TEXT);\n-- +goose Down\n", earlier) == nil {
		t.Error("a way back is let through")
	}
}

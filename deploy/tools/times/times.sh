#!/usr/bin/env bash
# Prints what the change tier's tests of each package cost, one package at a time: processor seconds with those of
# the database and of every program that the tests start, and wall seconds. Building is not counted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
root=$PWD
tests=$(mktemp -d)
trap 'rm -rf "$tests"' EXIT
export TIMEFORMAT='%U %S %R'

printf '| package | processor s | wall s |\n| --- | ---: | ---: |\n'
for dir in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "${@:-./...}"); do
	name=${dir#"$root"/}
	go test -c -o "$tests/test" "./$name"
	cd "$dir"
	cost=$({ time "$root/bin/tools/withdb" -- "$tests/test" -test.short >"$tests/log" 2>&1; } 2>&1) || {
		cat "$tests/log" >&2
		exit 1
	}
	cd "$root"
	awk -v name="$name" '{ printf "| `%s` | %.0f | %.0f |\n", name, $1 + $2, $3 }' <<<"$cost"
done | sort -t '|' -k 3,3 -rn

#!/usr/bin/env bash
# Fails where generated code differs from what `make generate` writes now. It
# works on copies, so a tree with unsaved work is judged as it is and not touched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

copies=$(mktemp -d)
trap 'rm -rf "$copies"' EXIT
mkdir "$copies/kept" "$copies/made"

# What git would keep: tracked or new, not ignored, not deleted.
git ls-files -z --cached --others --exclude-standard --deduplicate |
	while IFS= read -r -d '' file; do
		if [[ -e $file ]]; then printf '%s\0' "$file"; fi
	done |
	tar --null --files-from=- -cf - | tar -xf - -C "$copies/kept"
cp -R "$copies/kept/." "$copies/made"

# Removed first, so that a file which nothing generates any more shows up.
{ grep -rlE --include='*.go' '^// Code generated .* DO NOT EDIT\.$' "$copies/made" || true; } |
	while IFS= read -r file; do rm "$file"; done

make --no-print-directory -C "$copies/made" generate

if ! diff -ru "$copies/kept" "$copies/made"; then
	echo "generated code is out of date: run make generate and commit what it changes" >&2
	exit 1
fi
echo "generated code is up to date"

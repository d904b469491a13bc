package kind

import "testing"

func TestMatchNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, told, want string }{
		{"Budi Santoso", "BUDI SANTOSO", "yes"},
		{"  budi   santoso ", "Budi Santoso", "yes"},
		{"Bpk. Budi Santoso, S.H.", "BUDI SANTOSO", "yes"},
		{"Budi Santoso", "IR H BUDI SANTOSO MM", "yes"},
		{"PT. Sumber Makmur Tbk", "SUMBER MAKMUR PT", "yes"},
		{"Siti Nur'aini", "SITI NURAINI", "no"}, // somebody else may be called so
		{"Siti Nur-Aini", "SITI NUR AINI", "yes"},
		{"Renée Putri", "RENEE PUTRI", "yes"},
		{"Muhammad Rizky Ramadhan Putra", "MUHAMMAD RIZKY RAMADH", "yes"},
		{"MUHAMMAD RIZKY RAMADH", "Muhammad Rizky Ramadhan Putra", "yes"},
		{"Budi Santoso", "BUDI", "no"}, // too short to be a limit
		{"Budi Santoso", "BUDI SANTOSA", "no"},
		{"Budi Santoso", "SANTOSO BUDI", "no"},
		{"Budi Santoso", "B*** S******", "unknown"}, // two letters say nothing
		{"Budi Santoso", "BUD* SANT***", "yes"},
		{"Budi Santoso", "BUD* SUNT***", "no"},
		{"Budi Santoso", "***********", "unknown"},
		{"Bud* Sant***", "BUDI SANTOSO", "yes"}, // as an inquiry elsewhere told it
		{"Bud* Sunt***", "BUDI SANTOSO", "no"},
		{"B*** S******", "BUDI SANTOSO", "unknown"},
		{"BUD* SANT***", "Bud* Sant***", "yes"},
		{"BUDI SANT***", "BUD* SANTOSO", "unknown"},
		{"Budi Santoso", "", "unknown"},
		{"", "BUDI SANTOSO", "unknown"},
		{"...", "BUDI SANTOSO", "unknown"},
		{"Ibu", "IBU", "yes"},
		{"(.*)", "BUDI SANTOSO", "unknown"},
		{"Budi", "BU*(", "unknown"},
	} {
		got := "unknown"
		if match := matchNames(c.given, c.told); match != nil && *match {
			got = "yes"
		} else if match != nil {
			got = "no"
		}
		if got != c.want {
			t.Errorf("%q for %q: %s, want %s", c.given, c.told, got, c.want)
		}
	}
}

func FuzzMatchNames(f *testing.F) {
	f.Add("Budi Santoso", "B*DI [SANT*")
	f.Fuzz(func(t *testing.T, given, told string) {
		matchNames(given, told) // never panics
		if own := matchNames(given, given); own != nil && !*own {
			t.Errorf("%q is not called itself", given)
		}
	})
}

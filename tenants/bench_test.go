package tenants

import (
	"strconv"
	"testing"
)

// BenchmarkAuthenticate answers from memory: the price that every request pays.
func BenchmarkAuthenticate(b *testing.B) {
	for _, others := range []int{0, 100_000} {
		b.Run("merchants="+strconv.Itoa(others+1), func(b *testing.B) {
			n := newTenant(b)
			source := mintSource{memorySource: newSource(n.account(b)), t: b, template: typicalTenant(b, testVault(b))}
			d := newTestDirectory(source)
			d.adopt(n.account(b))
			d.keys.found.Set(keyName([]byte(n.keys[0].ID)), n.merchant.ID)
			warm(b, d, others)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Authenticate(b.Context(), epoch, n.plain[0], anywhere); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAuthenticateParallel(b *testing.B) {
	n := newTenant(b)
	d := newTestDirectory(newSource(n.account(b)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := d.Authenticate(b.Context(), epoch, n.plain[0], anywhere); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkRefuse is what a wrong secret costs once its key is known.
func BenchmarkRefuse(b *testing.B) {
	n := newTenant(b)
	d := newTestDirectory(newSource(n.account(b)))
	wrong := wrongSecret(n.plain[0])
	for b.Loop() {
		if _, err := d.Authenticate(b.Context(), epoch, wrong, anywhere); err == nil {
			b.Fatal("accepted")
		}
	}
}

func BenchmarkOpenCredentials(b *testing.B) {
	v := testVault(b)
	c := typicalTenant(b, v).conns[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.OpenCredentials(c); err != nil {
			b.Fatal(err)
		}
	}
}

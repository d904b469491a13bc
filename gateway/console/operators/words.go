package operators

var words = map[string]string{
	"Overview":       "Ringkasan",
	"Needs a person": "Perlu ditangani orang",
	"Nothing waits.": "Tidak ada yang menunggu.",
}

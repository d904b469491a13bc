package sandbox

// status is a transaction's status as answers have it.
type status string

// The closed set of statuses.
const (
	succeeded status = "Sukses"
	pending   status = "Pending"
	failed    status = "Gagal"
)

// rc is a response code: two digits.
type rc string

// Response codes that the simulator gives by itself.
const (
	rcSuccess       rc = "00"
	rcFailed        rc = "02"
	rcPending       rc = "03"
	rcPayload       rc = "40"
	rcSignature     rc = "41"
	rcUser          rc = "42"
	rcSKU           rc = "43"
	rcDeposit       rc = "44"
	rcReference     rc = "49"
	rcNotFound      rc = "50"
	rcPrefix        rc = "52"
	rcSellerOff     rc = "53"
	rcCustomer      rc = "54"
	rcDigits        rc = "57"
	rcNoBill        rc = "60"
	rcOutOfStock    rc = "68"
	rcPrice         rc = "69"
	rcRefunded      rc = "74"
	rcListLimit     rc = "83"
	rcPollLimit     rc = "85"
	rcMultiple      rc = "87"
	rcNotAllowed    rc = "88"
	rcRouterTrouble rc = "99"
)

// meaning is what a code says of a transaction.
type meaning struct {
	status status
	// recorded means that a transaction exists, so that its reference is used.
	recorded bool
	message  string
}

// meanings are all codes; messages are in our own words.
var meanings = map[rc]meaning{
	rcSuccess:       {succeeded, true, "Transaksi berhasil"},
	"01":            {failed, true, "Waktu transaksi habis"},
	rcFailed:        {failed, true, "Transaksi gagal"},
	rcPending:       {pending, true, "Transaksi sedang diproses"},
	rcPayload:       {failed, false, "Isi permintaan tidak benar"},
	rcSignature:     {failed, false, "Tanda tangan tidak cocok"},
	rcUser:          {failed, false, "Pengguna API tidak dikenal"},
	rcSKU:           {failed, false, "SKU tidak ada atau tidak aktif"},
	rcDeposit:       {failed, false, "Saldo tidak cukup"},
	"45":            {failed, false, "Alamat IP tidak diizinkan"},
	"47":            {failed, false, "Transaksi sudah dilakukan pembeli lain"},
	rcReference:     {failed, false, "ref_id sudah dipakai"},
	rcNotFound:      {failed, true, "Transaksi tidak ditemukan"},
	"51":            {failed, true, "Nomor tujuan diblokir"},
	rcPrefix:        {failed, true, "Awalan nomor bukan milik operator ini"},
	rcSellerOff:     {failed, true, "Produk penjual sedang tidak tersedia"},
	rcCustomer:      {failed, true, "Nomor tujuan salah"},
	"55":            {failed, true, "Produk sedang gangguan"},
	rcDigits:        {failed, true, "Jumlah digit nomor tujuan tidak sesuai"},
	"58":            {failed, true, "Produk sedang jeda harian"},
	"59":            {failed, true, "Nomor tujuan di luar wilayah produk"},
	rcNoBill:        {failed, true, "Tagihan belum tersedia"},
	"61":            {failed, false, "Belum pernah menambah saldo"},
	"62":            {failed, false, "Penjual sedang gangguan"},
	"63":            {failed, false, "Produk tidak mendukung transaksi berulang"},
	"64":            {failed, false, "Tiket saldo gagal dibuat"},
	"66":            {failed, false, "Penjual sedang jeda harian"},
	"67":            {failed, false, "Penjual belum terverifikasi"},
	rcOutOfStock:    {failed, false, "Stok habis"},
	rcPrice:         {failed, false, "Harga penjual di atas batas harga pembeli"},
	"70":            {failed, true, "Waktu tunggu penyedia habis"},
	"71":            {failed, true, "Produk sedang tidak stabil"},
	"72":            {failed, true, "Paket lama harus dihentikan dahulu"},
	"73":            {failed, true, "kWh melebihi batas"},
	rcRefunded:      {failed, true, "Transaksi dikembalikan"},
	"80":            {failed, false, "Akun diblokir penjual"},
	"81":            {failed, false, "Penjual diblokir pembeli"},
	"82":            {failed, false, "Akun pembeli belum terverifikasi"},
	rcListLimit:     {failed, false, "Daftar harga terlalu sering diminta"},
	"84":            {failed, true, "Nominal tidak sesuai"},
	rcPollLimit:     {failed, true, "Terlalu sering, tunggu satu menit"},
	"86":            {failed, true, "Pengecekan PLN terlalu sering"},
	rcMultiple:      {failed, false, "Nominal harus kelipatan 1.000"},
	rcNotAllowed:    {failed, false, "Tindakan tidak diizinkan"},
	rcRouterTrouble: {pending, true, "Transaksi diteruskan, hasil menyusul"},
}

// refusal is a call that was answered with a code and did nothing.
type refusal struct {
	code rc
	why  string // replaces the code's message when it is not empty
}

// Error returns the message.
func (r *refusal) Error() string {
	if r.why != "" {
		return r.why
	}
	return meanings[r.code].message
}

func refuse(code rc) error { return &refusal{code: code} }

func refuseBecause(code rc, why string) error { return &refusal{code, why} }

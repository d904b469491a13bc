package edge

import "golang.org/x/text/language"

// words are a checkout page's texts in one language.
type words struct {
	Code, Name string

	To, PaidTo, From, QR, Scan, ShowsName, Pay, Save, Print, Waiting, Before, Reference, For, Language, Test string

	Paid, PaidMore, Back, Returning string
	Expired, ExpiredMore            string
	Cancelled, CancelledMore        string
	Late, LateMore                  string
	Reversed, ReversedMore          string
	Failed, FailedMore              string
	Checkout                        string // the title
	NotFound, NotFoundMore          string
	Broken, BrokenMore              string
	Months                          [12]string
}

// languages are what a page can speak; the first is spoken unless asked
// otherwise.
var languages = []words{
	{
		Code: "id", Name: "Bahasa Indonesia",
		To: "Bayar ke", PaidTo: "Dibayar ke", From: "Tagihan dari", QR: "Kode QR untuk membayar",
		Scan: "Pindai dengan aplikasi bank atau dompet digital apa pun.", ShowsName: "Nama yang tampil di aplikasi:",
		Pay: "Lanjut ke pembayaran", Save: "Simpan gambar QR", Print: "Cetak bukti pembayaran", Waiting: "Menunggu pembayaran",
		Before: "Bayar sebelum", Reference: "Nomor referensi", For: "Keterangan", Language: "Bahasa",
		Test: "Mode uji: tidak ada uang sungguhan yang berpindah.",
		Paid: "Pembayaran berhasil", PaidMore: "Terima kasih, pembayaran Anda sudah kami terima.",
		Back: "Kembali ke toko", Returning: "Anda akan kembali ke toko sebentar lagi.",
		Expired: "Waktu pembayaran habis", ExpiredMore: "Jangan membayar lagi di sini. Mintalah tagihan baru kepada toko.",
		Late: "Pembayaran datang setelah waktunya", LateMore: "Pembayaran Anda sudah tercatat dan toko diberi tahu. Jangan membayar lagi; hubungi toko.",
		Reversed: "Pembayaran ditarik kembali", ReversedMore: "Pembayaran ini pernah masuk, lalu dikembalikan. Halaman ini bukan bukti pembayaran; hubungi toko.",
		Cancelled: "Tagihan dibatalkan", CancelledMore: "Tagihan ini ditutup sebelum waktunya. Jangan membayar lagi di sini.",
		Failed: "Pembayaran gagal", FailedMore: "Pembayaran ini tidak dapat diselesaikan. Hubungi toko atau minta tagihan baru.",
		Checkout: "Pembayaran",
		NotFound: "Tagihan tidak ditemukan", NotFoundMore: "Periksa kembali tautannya, atau mintalah tautan baru kepada toko.",
		Broken: "Halaman belum bisa ditampilkan", BrokenMore: "Ada gangguan sementara di pihak kami. Muat ulang halaman ini sebentar lagi.",
		Months: [12]string{"Jan", "Feb", "Mar", "Apr", "Mei", "Jun", "Jul", "Agu", "Sep", "Okt", "Nov", "Des"},
	},
	{
		Code: "en", Name: "English",
		To: "Pay to", PaidTo: "Paid to", From: "Bill from", QR: "QR code to pay",
		Scan: "Scan it with any bank or e-wallet app that reads QRIS.", ShowsName: "The app shows the name",
		Pay: "Continue to payment", Save: "Save the QR image", Print: "Print the proof of payment", Waiting: "Waiting for the payment",
		Before: "Pay before", Reference: "Reference", For: "For", Language: "Language",
		Test: "Test mode: no real money moves.",
		Paid: "Payment received", PaidMore: "Thank you, your payment has arrived.",
		Back: "Back to the shop", Returning: "You will be taken back to the shop in a moment.",
		Expired: "The time to pay is over", ExpiredMore: "Please don't pay here any more. Ask the shop for a new bill.",
		Late: "The payment came after its time", LateMore: "Your payment is recorded and the shop has been told. Please don't pay again; contact the shop.",
		Reversed: "The payment was taken back", ReversedMore: "This payment had arrived and was taken back since. This page is no proof of payment; contact the shop.",
		Cancelled: "The bill was cancelled", CancelledMore: "It was closed before its time. Please don't pay here any more.",
		Failed: "The payment failed", FailedMore: "This payment could not be finished. Contact the shop or ask for a new bill.",
		Checkout: "Payment",
		NotFound: "There is no such bill", NotFoundMore: "Check the link, or ask the shop for a new one.",
		Broken: "The page can't be shown right now", BrokenMore: "Something is wrong on our side for the moment. Reload this page in a little while.",
		Months: [12]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
	},
}

var matcher = language.NewMatcher([]language.Tag{language.Indonesian, language.English})

// speak chooses the language: what the page was asked for, then what the browser
// prefers, then what the merchant's label names, then Indonesian.
func speak(asked, accepted, merchants string) words {
	_, index := language.MatchStrings(matcher, asked, accepted, merchants)
	return languages[index]
}

package operators

import "maps"

// values is the Indonesian of words that documents of the admin API have in them.
var values = map[string]string{
	"active": "aktif", "suspended": "ditangguhkan", "platform": "platform", "merchant": "merchant",
	"payment": "pembayaran", "collection": "penagihan", "order": "pesanan", "transfer": "transfer",
	"submitting": "sedang dikirim", "acknowledged": "diterima", "pending": "menunggu hasil", "succeeded": "berhasil", "failed": "gagal", "expired": "kedaluwarsa",
	"not_submitted": "tidak terkirim", "waiting": "menunggu", "delivered": "terkirim", "gone": "tidak diinginkan", "dead": "menyerah", "none": "tidak ada",
	"posted": "dibukukan", "rejected": "ditolak", "unmatched": "tanpa pasangan", "ambiguous": "meragukan", "again": "terulang",
	"available": "tersedia", "held": "ditahan", "margin": "margin", "cost": "biaya", "deposit": "deposit", "clearing": "kliring", "equity": "ekuitas",
	"credit": "kredit", "debit": "debit", "connection": "koneksi", "provider": "penyedia", "transfers": "transfer",
	"success": "berhasil", "resubmit": "kirim ulang",
	"admitted": "diizinkan", "denied": "ditolak", "slowed": "diperlambat", "over_quota": "melewati kuota", "unjudged": "tidak dinilai",
	"closed": "tertutup", "half-open": "setengah terbuka", "open": "terbuka",
	"refused": "ditolak", "pushed": "dikirim", "past": "lampau", "proposed": "diusulkan", "done": "selesai", "withdrawn": "ditarik",
	"silent": "diam", "approved": "disetujui", "in force": "berlaku", "removed": "dihapus",
	"stricter": "lebih ketat", "looser": "lebih longgar", "mixed": "campuran", "equal": "sama",
	"amount_differs": "jumlah berbeda", "currency_differs": "mata uang berbeda", "paid_again": "dibayar lagi", "paid_late": "dibayar terlambat",
	"reversed": "dibatalkan", "vanished": "hilang", "contradiction": "bertentangan", "unknown_reference": "referensi tidak dikenal", "unresolved": "belum jelas",
	"our_account": "rekening kita", "fee_differs": "biaya berbeda", "unreadable": "tidak terbaca", "statement": "mutasi",
	"overridden_alone": "diputuskan sendiri", "plugin_down": "plugin mati", "circuit_open": "pemutus sirkuit terbuka", "policy_refused": "kebijakan ditolak",
}

var words = map[string]string{
	"Overview":       "Ringkasan",
	"Merchants":      "Merchant",
	"Merchant":       "Merchant",
	"Waiting":        "Menunggu",
	"Policies":       "Kebijakan",
	"Policy":         "Kebijakan",
	"Providers":      "Penyedia",
	"Provider":       "Penyedia",
	"Pauses":         "Jeda",
	"Replicas":       "Replika",
	"Replica":        "Replika",
	"Audit":          "Audit",
	"People":         "Orang",
	"Needs a person": "Perlu ditangani orang",
	"Nothing waits.": "Tidak ada yang menunggu.",

	// Lists and tables.
	"Next": "Berikutnya", "Find": "Cari", "Show": "Tampilkan", "State": "Status", "Tier": "Tingkat", "Id": "Id", "Created": "Dibuat", "Changed": "Diubah",
	"Time": "Waktu", "Who": "Siapa", "What": "Apa", "Detail": "Rincian", "Kind": "Jenis", "Amount": "Jumlah", "Reference": "Referensi", "Reason": "Alasan",
	"Balance": "Saldo", "Statement": "Mutasi", "Event": "Peristiwa", "Attempts": "Percobaan", "Attempt": "Percobaan", "Movement": "Transaksi", "About": "Tentang",
	"Value": "Nilai", "Set": "Tetapkan", "Set by": "Ditetapkan oleh", "Until": "Sampai", "until": "sampai", "Version": "Versi", "Owner": "Pemilik", "Key": "Kunci", "Keys": "Kunci", "Scopes": "Cakupan",
	"From": "Dari", "Secret": "Rahasia", "Quota": "Kuota", "Quotas": "Kuota", "Used": "Terpakai", "used": "terpakai", "Limit": "Batas", "Operation": "Operasi", "Operations": "Operasi",
	"Request": "Permintaan", "Decision": "Keputusan", "Account": "Rekening", "Cost": "Biaya", "Fee": "Biaya merchant", "History": "Riwayat", "Callbacks": "Callback",
	"Exceptions": "Pengecualian", "Overrides": "Keputusan operator", "Outcome": "Hasil", "Times": "Kali", "First": "Pertama", "Last": "Terakhir", "Payment": "Pembayaran",
	"Connections": "Koneksi", "Notification URL": "URL notifikasi", "Rate": "Laju", "Price": "Harga", "Payouts": "Pengeluaran", "Quote": "Penawaran",
	"all": "semua", "both": "keduanya", "yes": "ya", "no": "tidak", "over": "berakhir", "ended": "berakhir", "revoked": "dicabut", "everywhere": "mana saja",
	"paused": "dijeda", "Paused": "Dijeda", "alone": "sendiri", "burst": "lonjakan", "calls": "panggilan", "lookups": "pemeriksaan", "runs": "berjalan", "down": "mati",
	"Approve": "Setujui", "Reject": "Tolak", "Resolve": "Selesaikan", "Remove": "Hapus", "Revoke": "Cabut", "Change": "Ubah", "Create": "Buat", "Copy": "Salin", "Copied": "Tersalin",
	"Pause": "Jeda", "Resume": "Lanjutkan", "Suspend": "Tangguhkan", "Assign": "Pasangkan", "Decide": "Putuskan", "Send again": "Kirim lagi",
	"None yet.": "Belum ada.", "Nothing fits.": "Tidak ada yang cocok.",

	// Finding.
	"Any id": "Id apa pun",
	"References, request, decision and movement ids, and providers' own: whatever somebody names.": "Referensi, id permintaan, keputusan, dan transaksi, serta id penyedia: apa pun yang disebut orang.",
	"What a refused request asked for": "Isi permintaan yang ditolak",
	"Ids that others made are looked for in the last %d days unless a day is given. Reading what a refused request asked for stands in the merchant's audit.": "Id buatan pihak lain dicari dalam %d hari terakhir kecuali ada tanggal. Membaca isi permintaan yang ditolak tercatat di audit merchant.",
	"Found by": "Ditemukan lewat", "Nothing has this id.": "Tidak ada yang memiliki id ini.", "What was asked": "Yang diminta",

	// The overview.
	"What waits": "Yang menunggu", "Circuit breakers": "Pemutus sirkuit", "In flight": "Berjalan", "Median": "Median", "99th percentile": "Persentil ke-99",
	"%d accounts": "%d rekening", "No provider is installed.": "Belum ada penyedia terpasang.", "All replicas": "Semua replika",

	// Merchants.
	"New merchant": "Merchant baru", "There is no merchant yet.": "Belum ada merchant.", "As payers read it.": "Seperti dibaca pembayar.",
	"Its limits are the policy's.": "Batasnya menurut kebijakan.", "Time zone": "Zona waktu",
	"In which its months and days begin. The gateway's own unless it is given.": "Tempat bulan dan harinya dimulai. Zona gateway kecuali diisi.",
	"These are shown only now. Hand them over in a way that nobody else reads.": "Ini hanya ditampilkan sekarang. Serahkan dengan cara yang tidak dibaca orang lain.",
	"Key of test mode":                       "Kunci mode uji",
	"Key of live mode":                       "Kunci mode live",
	"Secret of callbacks in test mode":       "Rahasia callback mode uji",
	"Secret of callbacks in live mode":       "Rahasia callback mode live",
	"I have kept them":                       "Sudah saya simpan",
	"No quota counts this merchant's calls.": "Tidak ada kuota yang menghitung panggilan merchant ini.",
	"Limits of its own":                      "Batas khusus",
	"None: the policy's hold.":               "Tidak ada: batas kebijakan yang berlaku.",
	"%d transfers":                           "%d transfer",
	"Set a limit":                            "Tetapkan batas",
	"A rate or a quota by its name, or price:markup, payout:day, payout:destination_day, payout:repeat_within. Fill in what belongs to it.": "Nama laju atau kuota, atau price:markup, payout:day, payout:destination_day, payout:repeat_within. Isi yang sesuai.",
	"Calls a second": "Panggilan per detik", "At once": "Sekaligus", "Calls a month": "Panggilan per bulan", "Markup in rupiah": "Tambahan harga dalam rupiah",
	"Rupiah a day": "Rupiah per hari", "Transfers a day": "Transfer per hari", "The same one again after": "Yang sama lagi setelah", "For how long": "Berapa lama",
	"Such as 30m or 48h; for ever unless it is given.": "Misalnya 30m atau 48h; selamanya kecuali diisi.",
	"Change the tier": "Ubah tingkat",
	"Its keys are refused and its people's sessions end. What was begun goes on.": "Kuncinya ditolak dan sesi orang-orangnya diakhiri. Yang sudah dimulai tetap berjalan.",
	"Nothing is paused.": "Tidak ada yang dijeda.", "None for transfers.": "Tidak perlu untuk transfer.",
	"Revoke this key? Whatever uses it is refused at once, and it never comes back.": "Cabut kunci ini? Apa pun yang memakainya langsung ditolak, dan tidak dapat dikembalikan.",
	"The merchant is suspended. What was begun goes on.":                             "Merchant ditangguhkan. Yang sudah dimulai tetap berjalan.",
	"The merchant is active again.":                                                  "Merchant aktif kembali.",
	"The tier is changed.":                                                           "Tingkat telah diubah.",
	"The limit is set.":                                                              "Batas telah ditetapkan.",
	"The limit is removed: the policy's holds again.":                                "Batas dihapus: batas kebijakan berlaku lagi.",
	"The key is revoked.":                                                            "Kunci telah dicabut.",
	"Nothing was done yet.":                                                          "Belum ada yang dilakukan.",
	"The latest %d. A movement's page sends one again.":                              "%d terbaru. Halaman transaksi dapat mengirimnya lagi.",

	// Money.
	"Credit or debit": "Kredit atau debit", "Whole rupiah, without dots.": "Rupiah bulat, tanpa titik.", "Each counts once: the same again does nothing.": "Masing-masing berlaku sekali: mengulangnya tidak berpengaruh.",
	"Change the balance": "Ubah saldo", "Nothing was posted in the last 31 days.": "Tidak ada pembukuan dalam 31 hari terakhir.",
	"This reference was used before, with the same words: nothing was done twice.": "Referensi ini sudah pernah dipakai dengan isi yang sama: tidak ada yang dilakukan dua kali.",
	"It waits until another operator approves it.":                                 "Menunggu persetujuan operator lain.",
	"The balance is changed.":                                                      "Saldo telah diubah.",
	"It is approved and posted.":                                                   "Telah disetujui dan dibukukan.",
	"It is rejected.":                                                              "Telah ditolak.",
	"Credits and debits to approve":                                                "Kredit dan debit yang perlu disetujui",

	// What waits.
	"The provider's id": "Id dari penyedia", "What was done": "Yang dilakukan", "The exception is resolved.": "Pengecualian telah diselesaikan.",
	"Statement lines that pay no collection stand on each merchant's page, overrides on each movement's. At most %d exceptions are listed.": "Baris mutasi yang tidak membayar penagihan ada di halaman tiap merchant, keputusan operator di halaman tiap transaksi. Paling banyak %d pengecualian ditampilkan.",
	"Statement lines": "Baris mutasi",
	"Lines of providers' statements that pay no collection yet.": "Baris mutasi penyedia yang belum membayar penagihan mana pun.",
	"Pays the collection": "Membayar penagihan", "The line pays that collection now.": "Baris itu kini membayar penagihan tersebut.",

	// Pauses.
	"Nothing new begins where something is paused; what has begun goes on.":                                                                     "Tidak ada yang baru dimulai di tempat yang dijeda; yang sudah dimulai tetap berjalan.",
	"A provider for everybody, the platform's own connection, or the transfers of all merchants. What is one merchant's is paused on its page.": "Penyedia untuk semua, koneksi milik platform, atau transfer semua merchant. Milik satu merchant dijeda di halamannya.",
	"It is paused: nothing new begins, and what has begun goes on.":                                                                             "Dijeda: tidak ada yang baru dimulai, dan yang sudah dimulai tetap berjalan.",
	"It goes on.": "Dilanjutkan.",
	"This pause is ended, but another one still holds the same thing.": "Jeda ini diakhiri, tetapi jeda lain masih menahan hal yang sama.",

	// A movement.
	"%s says %s: %s. Another operator has to say the same.": "%s menyatakan %s: %s. Operator lain harus menyatakan hal yang sama.",
	"Sent as": "Dikirim sebagai", "The provider's reference": "Referensi penyedia", "Expires": "Kedaluwarsa", "Last lookup": "Pemeriksaan terakhir",
	"%d found nothing": "%d tanpa hasil", "Next lookup": "Pemeriksaan berikutnya", "Paid late": "Dibayar terlambat", "Reversed": "Dibatalkan", "The name fits": "Nama cocok",
	"Answers that changed nothing": "Jawaban yang tidak mengubah apa pun", "Ledger entries": "Pembukuan", "Say how it ended": "Nyatakan hasilnya",
	"Only where the provider tells no end. Two operators have to say the same; look at the provider's own records first.": "Hanya bila penyedia tidak menyatakan hasilnya. Dua operator harus menyatakan hal yang sama; periksa dahulu catatan penyedia.",
	"Alone: there is no time for a second operator. It is reviewed afterwards.":                                           "Sendiri: tidak ada waktu untuk operator kedua. Ditinjau sesudahnya.",
	"The first answer": "Jawaban pertama", "The provider's result": "Hasil dari penyedia", "The provider's quote": "Penawaran dari penyedia",
	"It waits until another operator says the same.": "Menunggu operator lain menyatakan hal yang sama.",
	"The outcome is decided.":                        "Hasilnya telah diputuskan.",
	"The callback is sent again.":                    "Callback dikirim lagi.",
}

// spoken are all of them.
func spoken() map[string]string {
	all := maps.Clone(values)
	maps.Copy(all, words)
	return all
}

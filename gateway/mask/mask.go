// Package mask hides what is secret or personal in bodies and texts, before they are kept for people to read. A value stays as it is
// only where its name is known to be harmless. The package knows nothing of merchants, and must not decide who may read what.
package mask

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Removed stands for a secret.
const Removed = "[removed]"

// class is what the name of a field tells of its value.
type class int

const (
	unknown  class = iota // initials stay
	secret                // nothing stays
	number                // of a phone, an account, a card or a person: the last four digits stay
	link                  // pays, or opens a page: its beginning stays
	prose                 // as Text
	harmless              // all stays but what looks like a secret, a mail address or a number of a person's or a card's
)

// secretWords are what a secret is called: the first as a part of a name, the second as all of it. A ~ stands for a _ or - that may be left
// out.
const (
	secretParts = "secret passw passphrase token authoriz api~key server~key private~key credential signature cookie session bearer"
	secretNames = "pin otp cvv cvc key"
)

// The names of fields, in small letters and without what separates words. Those of secrets and links are parts of names.
var (
	secrets = strings.Fields(strings.ReplaceAll(secretParts, "~", ""))
	linked  = []string{"qr", "url", "link"}
	known   = names(map[class]string{
		secret: secretNames,
		link:   "uri redirecturi",
		number: `phone phonenumber mobile msisdn whatsapp account accountno accountnumber norek rekening target destination customerno customernumber
			customerid card cardnumber nik ktp npwp passport sn va vanumber virtualaccount`,
		prose: "message description desc reason note notes error title label",
		harmless: `externalid refid reference referenceno providerreference upstreamreference txid refundid id requestid decisionid movementid eventid
			merchantid status bankstatus type channel channelid bankcode bank brand category sku buyerskucode code errorcode field sent retry kind mode
			operation provider event currency success period qty quantity page limit count total amount baseamount paidamount returnedamount
			transactionamount fee bankfee walletfee price balance admin remaining remainingquota createdat updatedat paidat paidlateat returnedat
			expiresat transactiontype transactiondate transactiontime productname bankname`,
	})
	plain = strings.NewReplacer("_", "", "-", "", " ", "", ".", "")
)

func names(of map[class]string) map[string]class {
	all := map[string]class{}
	for c, list := range of {
		for name := range strings.FieldsSeq(list) {
			all[name] = c
		}
	}
	return all
}

func classOf(name string) class {
	name = plain.Replace(strings.ToLower(name))
	holds := func(part string) bool { return strings.Contains(name, part) }
	for _, part := range secrets {
		if holds(part) {
			return secret
		}
	}
	if c, is := known[name]; is {
		return c
	}
	for _, part := range linked {
		if holds(part) {
			return link
		}
	}
	return unknown
}

// JSON is a JSON object or array as it may be read, and whether that is all of the text. What is broken off is closed where it ends, and what
// is no JSON at all is "".
func JSON(text []byte) (masked string, whole bool) {
	in := jsontext.NewDecoder(bytes.NewReader(text))
	if kind := in.PeekKind(); kind != '{' && kind != '[' {
		return "", false
	}
	var buffer bytes.Buffer
	out := jsontext.NewEncoder(&buffer, jsontext.AllowDuplicateNames(true)) // what differs may read alike
	err := object(in, out, unknown)
	masked = strings.TrimSuffix(buffer.String(), "\n")
	if err != nil && len(masked) <= len("{}") {
		return "", false
	}
	if err == nil {
		_, err = in.ReadToken()
	}
	return masked, errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// value copies the next value, as its class lets it be read; one that can't be read is hidden.
func value(in *jsontext.Decoder, out *jsontext.Encoder, c class) error {
	switch kind := in.PeekKind(); {
	case c == secret:
		return errors.Join(in.SkipValue(), out.WriteToken(jsontext.String(Removed)))
	case kind == '{' || kind == '[':
		return object(in, out, c)
	default:
		token, err := in.ReadToken()
		if err != nil {
			return errors.Join(err, out.WriteToken(jsontext.String(hidden)))
		}
		if kind == '"' || kind == '0' {
			text := token.String()
			masked := c.mask(text)
			if kind == '0' && masked == text {
				return out.WriteToken(token.Clone())
			}
			token = jsontext.String(masked)
		}
		return out.WriteToken(token)
	}
}

// object copies an object, or an array, whose elements are of its own class. It is closed also where it can't be read to its end.
func object(in *jsontext.Decoder, out *jsontext.Encoder, c class) error {
	begin, err := in.ReadToken()
	if err != nil {
		return err
	}
	end := jsontext.EndArray
	if begin.Kind() == '{' {
		end = jsontext.EndObject
	}
	if err := out.WriteToken(begin); err != nil {
		return err
	}
	for in.PeekKind() != '}' && in.PeekKind() != ']' {
		of := c
		if end.Kind() == '}' {
			name, err := in.ReadToken()
			if err != nil {
				return errors.Join(err, out.WriteToken(end))
			}
			text := name.String()
			if of = classOf(text); of == unknown || of == secret || of == link { // others are whole names that are known
				text = Text(text)
			}
			if err := out.WriteToken(jsontext.String(text)); err != nil {
				return errors.Join(err, out.WriteToken(end))
			}
			if c == number && (of == harmless || of == prose) { // the id of an account is its number
				of = number
			}
		} else if in.PeekKind() == 0 {
			_, err := in.ReadToken()
			return errors.Join(err, out.WriteToken(end))
		}
		if err := value(in, out, of); err != nil {
			return errors.Join(err, out.WriteToken(end))
		}
	}
	_, err = in.ReadToken()
	return errors.Join(err, out.WriteToken(end))
}

// mostProse is how much of a text is kept, in bytes.
const mostProse = 1000

func (c class) mask(text string) string {
	switch {
	case text == "":
		return ""
	case c == link:
		return cut(text)
	case c == prose:
		return Beginning(text, mostProse)
	case c == number:
		return lastFour(text)
	case c == harmless && len(text) > mostProse:
		return Beginning(text, mostProse)
	case c == harmless:
		return named(text)
	case len(text) > mostProse:
		return hidden
	case strings.Contains(text, "@"):
		return Text(text)
	}
	return initials(text)
}

// pass hides one sort of what may not be read. To look for it costs more than to see that it can't be there.
type pass struct {
	may  func(s signs) bool
	what *regexp.Regexp
}

// signs are what a text may have something to hide by.
type signs struct {
	text, lower  string
	digits, word int // of the longest word, the characters
}

func signsOf(text string) signs {
	s, word := signs{text: text, lower: strings.ToLower(text)}, 0
	for _, r := range text {
		if unicode.IsDigit(r) {
			s.digits++
		}
		if word++; unicode.IsSpace(r) {
			word = 0
		}
		s.word = max(s.word, word)
	}
	return s
}

func (s signs) has(words string) bool {
	for word := range strings.FieldsSeq(words) {
		word, _, _ = strings.Cut(word, "~")
		if strings.Contains(s.lower, word) {
			return true
		}
	}
	return false
}

func expression(text string) *regexp.Regexp { return regexp.MustCompile("(?i)" + text) }

func oneOf(words string) string {
	return strings.NewReplacer(" ", "|", "~", "[_-]?").Replace(words)
}

const numberLike = `\p{Nd}(?:[\p{Zs}\p{Pd}\p{Cf}.()/_]{0,3}\p{Nd}){7,}`

var (
	links = pass{
		func(s signs) bool { return s.has("://") }, expression(`(?P<link>\bhttps?://[^\s"'<>]+)`),
	}
	assigned = pass{
		func(s signs) bool { return strings.ContainsAny(s.text, ":=") && s.has(secretParts+" "+secretNames) },
		expression(`(?P<name>(?:(?:` + oneOf(secretParts) + `)[\w-]*|(?:\b|_)(?:` + oneOf(secretNames) + `))["']?\s*[:=]\s*)(?:["'][^"'\n]*|(?:bearer |basic )?[^\s"',;&<>{}]+)`),
	}
	keys = pass{
		func(s signs) bool { return s.has("sk_ pk_ rk_ whsec_ _live_ _test_ bearer basic eyj") },
		expression(`(?P<secret>(?:sk|pk|rk)_(?:live|test)_\w{4,})|(?:\b|_)(?P<secret>(?:sk|pk|rk|whsec)_\w{4,}|[a-z]{2,8}_(?:live|test)_\w+|(?:bearer|basic)\s+[\w.~+/=-]{8,}|eyJ[\w-]{8,}\.[\w.-]+)`),
	}
	mails = pass{
		func(s signs) bool { return s.has("@") }, expression(`(?P<mail>[^\s@"'<>:;,()]+@[^\s@"'<>:;,()]+)`),
	}
	// Ids, times and amounts look like numbers and may be read.
	anyNumbers = pass{
		func(s signs) bool { return s.digits >= fewestDigits },
		expression(`(?P<kept>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b20\d\d-[01]\d-[0-3]\d(?:[T ][0-2]\d:[0-5]\d(?::[0-5]\d)?(?:\.\d{1,9})?)?|\bRp ?\d{1,3}(?:\.\d{3}){0,4}\b)|` +
			`(?P<number>` + numberLike + `)`),
	}
	longWords = pass{
		func(s signs) bool { return s.word >= longestWord }, expression(`(?P<secret>\b[\w-]{40,})`),
	}
)

// Text is a text as it may be read: without what looks like a secret, a mail address, a link or a number of eight digits or more, and without
// control characters.
func Text(text string) string {
	return hide(Clean(text, math.MaxInt), &links, &assigned, &keys, &longWords, &mails, &anyNumbers)
}

// named is the value of a name that is harmless.
func named(text string) string { return numbers(hide(text, &keys, &mails)) }

// hide lets passes hide what they find, one after the other.
func hide(text string, passes ...*pass) string {
	s := signsOf(text)
	for _, p := range passes {
		if p.may(s) {
			s = signsOf(p.hide(s.text))
		}
	}
	return s.text
}

func (p *pass) hide(text string) string {
	var out strings.Builder
	kinds, end := p.what.SubexpNames(), 0
	for _, at := range p.what.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(text[end:at[0]])
		end = at[1]
		for i := 1; i < len(kinds); i++ {
			if at[2*i] >= 0 {
				out.WriteString(shown(kinds[i], text[at[2*i]:at[2*i+1]]))
			}
		}
	}
	out.WriteString(text[end:])
	return out.String()
}

// Beginning is the beginning of a text as Text, of at most so many bytes. It is cut between words before, so that no half of a secret is left.
func Beginning(text string, most int) string {
	if read := 2 * most; len(text) > read {
		text = text[:strings.LastIndexAny(text[:read], " \t\r\n")+1]
	}
	return Clean(Text(text), most)
}

// Clean makes a text fit for a database, a terminal and a page: UTF-8 without control characters, of at most so many bytes. What may be a
// secret is masked before.
func Clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

func shown(kind, text string) string {
	switch kind {
	case "kept":
		return text
	case "name":
		return text + Removed
	case "link":
		return cut(text)
	case "mail":
		return mail(text)
	case "number":
		return lastFour(text)
	}
	return Removed
}

const (
	fewestDigits = 8  // of a number that is hidden
	longestWord  = 40 // that is no secret
)

// hidden stands for what is left out.
const hidden = "***"

// mail leaves the first letters of a mail address, and the last part of its domain.
func mail(text string) string {
	who, at, _ := strings.Cut(text, "@")
	last := ""
	if i := strings.LastIndex(at, "."); i >= 0 && !strings.ContainsFunc(at[i:], unicode.IsDigit) {
		last = at[i:]
	}
	return first(who) + hidden + "@" + first(at) + hidden + last
}

// lastFour leaves the last four digits of a number that has twice as many.
func lastFour(text string) string {
	digits := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
	const left = 4
	if r := []rune(digits); len(r) >= 2*left {
		return hidden + string(r[len(r)-left:])
	}
	return hidden
}

// mostWords bounds the initials of a text.
const mostWords = 8

// initials leaves the first letter of each word.
func initials(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = first(word) + hidden
	}
	return strings.Join(words[:min(len(words), mostWords)], " ")
}

// first is the first letter of a text, "" where it begins otherwise.
func first(text string) string {
	if r, size := utf8.DecodeRuneInString(text); unicode.IsLetter(r) {
		return text[:size]
	}
	return ""
}

// cut leaves the host of a URL, and else the length.
func cut(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" && u.Scheme != "" {
		return u.Scheme + "://" + Text(strings.ToValidUTF8(u.Hostname(), "")) + "/…"
	}
	return fmt.Sprintf("… (%d characters)", utf8.RuneCountInString(text))
}

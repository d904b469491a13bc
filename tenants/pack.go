package tenants

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net/netip"
	"time"
)

// The parts of a packed Account. Each part, each record in it and each text begins with its length, so that a reader
// skips what it was not asked for. The form lives in one process only and may change at any time.
const (
	sectionMerchant = iota
	sectionKeys
	sectionConnections
	sectionSecrets
)

const (
	keyMode    = 1 << iota // set: the second mode
	keyExpires             // an end follows
	keyRevoked             // a revocation follows
)

type packer struct{ buf []byte }

func (p *packer) number(n uint64) { p.buf = binary.AppendUvarint(p.buf, n) }

func (p *packer) time(t time.Time) {
	p.buf = binary.LittleEndian.AppendUint64(p.buf, uint64(t.UnixMicro()))
}

func packText[T ~string | ~[]byte](p *packer, s T) {
	p.number(uint64(len(s)))
	p.buf = append(p.buf, s...)
}

// packAll packs one section of records.
func packAll[T any](p *packer, records []T, pack func(*packer, T) error) error {
	var section packer
	for _, r := range records {
		var record packer
		if err := pack(&record, r); err != nil {
			return err
		}
		packText(&section, record.buf)
	}
	packText(p, section.buf)
	return nil
}

func (p *packer) merchant(m Merchant) error {
	status, err := codeOf(m.Status, statuses, "status")
	if err != nil {
		return err
	}
	var r packer
	r.number(uint64(m.Version))
	r.buf = append(r.buf, status)
	r.time(m.CreatedAt)
	packText(&r, m.Name)
	packText(&r, m.Tier)
	r.number(uint64(len(m.Labels)))
	for name, value := range m.Labels {
		packText(&r, name)
		packText(&r, value)
	}
	if err := r.limits(m.Limits); err != nil {
		return err
	}
	packText(p, r.buf)
	return nil
}

func (p *packer) key(k Key) error {
	flags, err := codeOf(k.Mode, modes, "mode")
	if err != nil {
		return err
	}
	if !k.Scopes.Valid() {
		return fmt.Errorf("%w: a key needs known scopes", ErrInvalid)
	}
	if k.ExpiresAt != nil {
		flags |= keyExpires
	}
	if k.RevokedAt != nil {
		flags |= keyRevoked
	}
	packText(p, k.ID)
	p.buf = append(p.buf, flags, byte(k.Scopes))
	p.buf = append(p.buf, k.Hash[:]...)
	p.time(k.CreatedAt)
	if k.ExpiresAt != nil {
		p.time(*k.ExpiresAt)
	}
	if k.RevokedAt != nil {
		p.time(*k.RevokedAt)
	}
	return p.prefixes(k.IPs)
}

func (p *packer) prefixes(ips []netip.Prefix) error {
	for _, ip := range ips {
		// An invalid range would match nothing, and is not told apart from one that was cut.
		if !ip.IsValid() {
			return fmt.Errorf("%w: an IP list holds addresses or CIDR ranges", ErrInvalid)
		}
		text, err := ip.MarshalBinary()
		if err != nil {
			return fmt.Errorf("%w: IP list: %w", ErrInvalid, err)
		}
		packText(p, text)
	}
	return nil
}

func (p *packer) connection(c Connection) error {
	mode, err := codeOf(c.Mode, modes, "mode")
	if err != nil {
		return err
	}
	owner, err := codeOf(c.Owner, owners, "owner")
	if err != nil {
		return err
	}
	p.buf = append(p.buf, mode, owner)
	packText(p, c.Provider)
	p.number(uint64(c.Version))
	packText(p, c.Sealed)
	if c.NotifyToken == "" {
		return nil
	}
	token, ok := c.NotifyToken.raw()
	if !ok {
		return fmt.Errorf("%w: a notify token is %d bytes in base64url", ErrInvalid, notifyTokenBytes)
	}
	p.buf = append(p.buf, token[:]...)
	return nil
}

func (p *packer) callbackSecret(s CallbackSecret) error {
	mode, err := codeOf(s.Mode, modes, "mode")
	if err != nil {
		return err
	}
	if s.NextSigns {
		mode |= secretNextSigns
	}
	p.buf = append(p.buf, mode)
	packText(p, s.Sealed)
	packText(p, s.Next)
	packText(p, s.URL)
	return nil
}

// secretNextSigns stands in the byte of a secret's mode.
const secretNextSigns = 1 << 7

// packed is what packer wrote: an Account without its id.
type packed string

func (p packed) version() int64 {
	u := p.section(sectionMerchant)
	return u.version()
}

// unpacker reads what packer wrote. Texts it returns share its memory.
type unpacker struct{ rest string }

func (p packed) section(n int) unpacker {
	u := unpacker{string(p)}
	for range n {
		u.text()
	}
	return unpacker{u.text()}
}

func (p packed) records(section int) iter.Seq[unpacker] {
	return func(yield func(unpacker) bool) {
		for u := p.section(section); u.rest != ""; {
			if !yield(unpacker{u.text()}) {
				return
			}
		}
	}
}

func (u *unpacker) take(n int) string {
	s := u.rest[:n]
	u.rest = u.rest[n:]
	return s
}

func (u *unpacker) byte() byte { return u.take(1)[0] }

func (u *unpacker) number() uint64 {
	var n uint64
	for shift := 0; ; shift += 7 {
		b := u.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}

func (u *unpacker) text() string { return u.take(int(u.number())) }

func (u *unpacker) time() time.Time {
	var raw [8]byte
	copy(raw[:], u.take(len(raw)))
	return time.UnixMicro(int64(binary.LittleEndian.Uint64(raw[:]))).UTC()
}

func (u *unpacker) mode() Mode { return modes[u.byte()] }

// ownerAndProvider skips the owner of a connection and returns its provider.
func (u *unpacker) ownerAndProvider() Provider {
	u.byte()
	return Provider(u.text())
}

func (u *unpacker) version() int64 { return int64(u.number()) }

func (u *unpacker) merchant(id MerchantID) Merchant {
	m := Merchant{ID: id, Version: u.version(), Status: statuses[u.byte()], CreatedAt: u.time()}
	m.Name, m.Tier = u.text(), Tier(u.text())
	if n := u.number(); n > 0 {
		m.Labels = make(map[string]string, n)
		for range n {
			name := u.text()
			m.Labels[name] = u.text()
		}
	}
	m.Limits = u.limits()
	return m
}

func (u *unpacker) key(merchant MerchantID) Key {
	k := Key{ID: KeyID(u.text()), MerchantID: merchant}
	flags := u.byte()
	k.Mode, k.Scopes = modes[flags&keyMode], Scopes(u.byte())
	copy(k.Hash[:], u.take(len(k.Hash)))
	k.CreatedAt = u.time()
	if flags&keyExpires != 0 {
		k.ExpiresAt = new(u.time())
	}
	if flags&keyRevoked != 0 {
		k.RevokedAt = new(u.time())
	}
	for u.rest != "" {
		var ip netip.Prefix
		// What prefixes wrote can be read; were it not so, the zero range matches no address.
		_ = ip.UnmarshalBinary([]byte(u.text()))
		k.IPs = append(k.IPs, ip)
	}
	return k
}

func (u *unpacker) connection(merchant MerchantID) Connection {
	c := Connection{MerchantID: merchant, Mode: u.mode(), Owner: owners[u.byte()]}
	c.Provider, c.Version = Provider(u.text()), u.version()
	c.Sealed = []byte(u.text())
	if u.rest != "" {
		c.NotifyToken = notifyToken([]byte(u.rest))
	}
	return c
}

func (u *unpacker) callbackSecret(merchant MerchantID) CallbackSecret {
	first := u.byte()
	s := CallbackSecret{
		MerchantID: merchant, Mode: modes[first&^secretNextSigns], NextSigns: first&secretNextSigns != 0,
		Sealed: []byte(u.text()),
	}
	if next := u.text(); next != "" {
		s.Next = []byte(next)
	}
	s.URL = u.text()
	return s
}

package edge

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"

	"github.com/boombuler/barcode/qr"
	"github.com/maypok86/otter/v2"
)

const (
	// quietZone is the white border that the standard asks for, in modules.
	quietZone = 4
	// modulePixels makes an image that is sharp on a screen and can be read
	// from a phone's gallery.
	modulePixels = 10
	keptImages   = 512
)

// qrImages draws QR codes, and keeps the last ones: a page that is open on two
// screens, or reloaded, is not drawn again.
type qrImages struct{ kept *otter.Cache[string, []byte] }

func newQRImages() (*qrImages, error) {
	kept, err := otter.New(&otter.Options[string, []byte]{MaximumSize: keptImages})
	if err != nil {
		return nil, fmt.Errorf("QR images: %w", err)
	}
	return &qrImages{kept}, nil
}

// png is the image of a QR string.
func (q *qrImages) png(text string) ([]byte, error) {
	if drawn, ok := q.kept.GetIfPresent(text); ok {
		return drawn, nil
	}
	drawn, err := drawQR(text)
	if err == nil {
		q.kept.Set(text, drawn)
	}
	return drawn, err
}

func drawQR(text string) ([]byte, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return nil, fmt.Errorf("QR image: %w", err)
	}
	modules := code.Bounds().Dx()
	side := (modules + 2*quietZone) * modulePixels
	picture := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.White, color.Black})
	for y := range modules * modulePixels {
		for x := range modules * modulePixels {
			if code.At(x/modulePixels, y/modulePixels) == color.Black {
				picture.SetColorIndex(x+quietZone*modulePixels, y+quietZone*modulePixels, 1)
			}
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		return nil, fmt.Errorf("QR image: %w", err)
	}
	return out.Bytes(), nil
}

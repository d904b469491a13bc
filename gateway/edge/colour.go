package edge

import (
	"encoding/hex"
	"fmt"
	"image/color"
	"math"
	"regexp"
	"strings"
)

// A merchant's colour is a sheet of its own, named by the colour: the pages' policy
// lets no style stand in the page, and browsers keep the sheet for ever.
const (
	colourPrefix = "colour-"
	colourSuffix = ".css"
)

var sixDigits = regexp.MustCompile(`^[0-9a-f]{6}$`)

// colourSheet is the path of the sheet of a merchant's colour, "" where there is none
// or no text could be read on it.
func colourSheet(colour string) string {
	digits := strings.ToLower(strings.TrimPrefix(colour, "#"))
	if len(digits) == 3 {
		d := digits
		digits = string([]byte{d[0], d[0], d[1], d[1], d[2], d[2]})
	}
	name := colourPrefix + digits + colourSuffix
	if _, usable := colourStyle(name); !strings.HasPrefix(colour, "#") || !usable {
		return ""
	}
	return assetRoot + name
}

// colourStyle is the sheet of a name; false where the name is of no sheet.
func colourStyle(name string) ([]byte, bool) {
	digits, isColour := strings.CutPrefix(name, colourPrefix)
	digits, isSheet := strings.CutSuffix(digits, colourSuffix)
	if !isColour || !isSheet || !sixDigits.MatchString(digits) {
		return nil, false
	}
	on, readable := textOn(rgb(digits))
	if !readable {
		return nil, false
	}
	return fmt.Appendf(nil, ":root { --accent: #%s; --on-accent: %s; }\n", digits, on), true
}

// leastContrast is what WCAG 2.2 asks for of text, at its level AA.
const leastContrast = 4.5

// textOn is the colour of text on a ground: white, or the pages' dark. It is false
// where neither can be read.
func textOn(ground color.RGBA) (css string, readable bool) {
	for _, text := range []string{"ffffff", "14181f"} {
		if contrast(ground, rgb(text)) >= leastContrast {
			return "#" + text, true
		}
	}
	return "", false
}

// contrast is the ratio of WCAG 2.2, from 1 to 21.
func contrast(a, b color.RGBA) float64 {
	light, dark := luminance(a), luminance(b)
	return (max(light, dark) + 0.05) / (min(light, dark) + 0.05)
}

func luminance(c color.RGBA) float64 {
	linear := func(part uint8) float64 {
		s := float64(part) / math.MaxUint8
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// rgb reads six hexadecimal digits.
func rgb(digits string) color.RGBA {
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != 3 {
		return color.RGBA{}
	}
	return color.RGBA{R: b[0], G: b[1], B: b[2], A: math.MaxUint8}
}

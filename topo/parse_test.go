package topo

import (
	"errors"
	"strings"
	"testing"
)

func TestATopologyIsWrittenAsItIsRead(t *testing.T) {
	for _, n := range networks {
		if got := parsed(t, n.spec, n.p).String(); got != n.spec {
			t.Errorf("%q is written %q", n.spec, got)
		}
	}
}

func TestWrongWordsAreRefusedWithTheirPlaceAndWhatWouldBeRight(t *testing.T) {
	const forms = "a file or one of dragonfly:4,2,2, fattree:k=4, full, hosts:4x8, hypercube, linear, mesh:4x4, ring, star, torus:8x8x8, tree"
	for _, c := range []struct {
		spec string
		at   int
		want string
	}{
		{"", 0, `topology "", character 1: found nothing more, want ` + forms},
		{"cube", 0, `topology "cube", character 1: found "cube", want ` + forms},
		{"dragonfly", 9, `topology "dragonfly", character 10: found nothing more, want sizes, as in dragonfly:4,2,2`},
		{"mesh:", 5, `topology "mesh:", character 6: found nothing more, want a size, as in mesh:4x4`},
		{"mesh:4xx4", 7, `topology "mesh:4xx4", character 8: found "x4", want a size, as in mesh:4x4`},
		{"mesh:4x0", 7, `topology "mesh:4x0", character 8: found "0", want a size, as in mesh:4x4`},
		{"mesh:4x-4", 7, `topology "mesh:4x-4", character 8: found "-4", want a size, as in mesh:4x4`},
		{"mesh:+4x4", 5, `topology "mesh:+4x4", character 6: found "+4x4", want a size, as in mesh:4x4`},
		{"torus:4,4", 6, `topology "torus:4,4", character 7: found "4,4", want a size, as in torus:8x8x8`},
		{"ring:8", 4, `topology "ring:8", character 5: found ":8", want no sizes: there is a place for every rank`},
		{"mesh:99999999999999999999", 5, `topology "mesh:99999999999999999999", character 6: found "99999999999999999999", want a size, as in mesh:4x4`},
		{"fattree:k=", 10, `topology "fattree:k=", character 11: found nothing more, want a size, as in fattree:k=4`},
		{"fattree:p=4", 8, `topology "fattree:p=4", character 9: found "p=4", want a size, as in fattree:k=4`},
		{"fattree:k=4,4", 11, `topology "fattree:k=4,4", character 12: found ",4", want no more sizes, as in fattree:k=4`},
		{"dragonfly:4,2", 13, `topology "dragonfly:4,2", character 14: found nothing more, want "," and a size, as in dragonfly:4,2,2`},
		{"hosts", 5, `topology "hosts", character 6: found nothing more, want sizes, as in hosts:4x8`},
		{"hosts:", 6, `topology "hosts:", character 7: found nothing more, want a size, as in hosts:4x8`},
		{"hosts:4x0", 8, `topology "hosts:4x0", character 9: found "0", want 1 rank or more on each host, as in hosts:4x8`},
		{"hosts:4x", 8, `topology "hosts:4x", character 9: found nothing more, want a size, as in hosts:4x8`},
		{"hosts:3+0x4", 8, `topology "hosts:3+0x4", character 9: found "0x4", want hosts, as in hosts:4x8`},
		{"hosts:4x4,2", 10, `topology "hosts:4x4,2", character 11: found "2", want links of each host, as in hosts:4x8,links=2`},
		{"hosts:4x4,links=0", 10, `topology "hosts:4x4,links=0", character 11: found "links=0", want links of each host, as in hosts:4x8,links=2`},
		{"dragonfly:4x2x2", 10, `topology "dragonfly:4x2x2", character 11: found "4x2x2", want a size, as in dragonfly:4,2,2`},
	} {
		_, err := Parse(c.spec, 16)
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.At != c.at {
			t.Errorf("%q: %#v does not point at %d", c.spec, err, c.at)
		}
	}
}

func TestATopologySizesItselfByTheNumberOfRanks(t *testing.T) {
	for _, c := range []struct {
		spec string
		p    int
		want string
	}{
		{"mesh", 1, "mesh:1x1"}, {"mesh", 7, "mesh:1x7"}, {"mesh", 12, "mesh:3x4"}, {"mesh", 1 << 20, "mesh:1024x1024"},
		{"torus", 2, "torus:1x2"}, {"torus", 16, "torus:4x4"}, {"torus", 20, "torus:4x5"},
		{"fattree", 2, "fattree:k=2"}, {"fattree", 16, "fattree:k=4"}, {"fattree", 54, "fattree:k=6"}, {"fattree", 1024, "fattree:k=16"},
		{"hosts:4", 32, "hosts:4x8"}, {"hosts:3", 8, "hosts:2x3+2"}, {"hosts:1,links=3", 8, "hosts:1x8"}, {"hosts:2+2", 4, "hosts:2x2"}, {"hosts:8", 8, "hosts:8x1"},
	} {
		if got := parsed(t, c.spec, c.p).String(); got != c.want {
			t.Errorf("%s of %d: got %s, want %s", c.spec, c.p, got, c.want)
		}
	}
}

func TestAnImpossibleTopologyIsOneClearLine(t *testing.T) {
	for _, c := range []struct {
		spec string
		p    int
		want string
	}{
		{"mesh:4x4", 15, `topology mesh:4x4 has 16 processors: want 15, one for each rank`},
		{"torus:2x3x4", 25, `topology torus:2x3x4 has 24 processors: want 25, one for each rank`},
		{"hypercube", 6, `topology hypercube of 6 processors: want a power of two, such as 4 or 8`},
		{"tree", 7, `topology tree of 7 processors: want a power of two, such as 4 or 8`},
		{"fattree:k=4", 15, `topology fattree:k=4 has 16 processors: want 15, one for each rank`},
		{"fattree", 15, `topology fattree:k=4 has 16 processors: want 15, one for each rank`},
		{"mesh", 1 << 40, `topology mesh:1099511627776 has 2.2e+12 directed links: want at most 2147483647`},
		{"fattree", 1 << 40, `topology fattree:k=16384 has 6.6e+12 directed links: want at most 2147483647`},
		{"fattree:3", 16, `topology fattree:k=3: want an even k of 2 or more`},
		{"fattree:99999998", 16, `topology fattree:k=99999998 has 1.5e+24 directed links: want at most 2147483647`},
		{"dragonfly:4,2,2", 71, `topology dragonfly:4,2,2 has 72 processors: want 71, one for each rank`},
		{"dragonfly:9999,9999,9999", 71, `topology dragonfly:9999,9999,9999 has 4e+16 directed links: want at most 2147483647`},
		{"ring", 0, `topology ring of 0 processors: want 1 or more`},
		{"full", -3, `topology full of -3 processors: want 1 or more`},
		{"full", 1 << 20, `topology full has 1.1e+12 directed links: want at most 2147483647`},
		{"hypercube", 1 << 30, `topology hypercube has 3.22e+10 directed links: want at most 2147483647`},
		{"hosts:4x4", 15, `topology hosts:4x4 has 16 processors: want 15, one for each rank`},
		{"hosts:9", 8, `topology hosts:9 of 8 processors: want 8 hosts or fewer`},
		{"hosts:99999999x99999999", 16, `topology hosts:99999999x99999999 has 2e+16 directed links: want at most 2147483647`},
		{"hosts:4x4,links=999999999", 16, `topology hosts has 8e+09 directed links: want at most 2147483647`},
		{"mesh:9999999999x9999999999", 16, `topology mesh:9999999999x9999999999 has 4e+20 directed links: want at most 2147483647`},
	} {
		_, err := Parse(c.spec, c.p)
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
	}
}

func TestSizesSayHowManyProcessorsThereAre(t *testing.T) {
	for spec, want := range map[string]int{
		"mesh:4x4": 16, "torus:2x3x4": 24, "fattree:k=4": 16, "dragonfly:4,2,2": 72, "hosts:4x8": 32, "hosts:3+2x4,links=2": 11,
		"hosts:4": 0, "mesh": 0, "ring": 0, "hypercube": 0, "mesh:": 0, "mesh:4x": 0, "hosts:4x": 0, "fattree:k=3": 0, "net.txt": 0, "": 0,
	} {
		if p, known := ProcessorsOf(spec); p != want || known != (want > 0) {
			t.Errorf("%s: got %d, %v, want %d", spec, p, known, want)
		}
	}
}

package routertest

import (
	"testing"

	"github.com/weirlog/weir/router"
)

func TestRecorderKeepsTheContract(t *testing.T) {
	Destination(t, func(*testing.T) (router.Destination, func() []string) {
		d := &Recorder{}
		return d, d.Rows
	})
}

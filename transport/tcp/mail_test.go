package tcp

import (
	"testing"

	"github.com/chorale-go/chorale/transport/transporttest"
)

func TestLettersKeepTheirContract(t *testing.T) {
	transporttest.RunMail(t, start(newPoller))
}

func TestPumpsCarryLettersToo(t *testing.T) {
	transporttest.RunMail(t, start(newPumps))
}

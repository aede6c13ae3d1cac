package inproc

import (
	"testing"

	"github.com/chorale-go/chorale/transport/transporttest"
)

func TestLetters(t *testing.T) { transporttest.RunMail(t, start) }

func TestMembersKeepTheirContract(t *testing.T) { transporttest.RunMember(t, start) }

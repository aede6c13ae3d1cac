package match

import (
	"errors"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// arrive adds a message from a rank, with a tag.
func arrive(q *TaggedQueue, context uint32, from, tag int) *Tagged {
	m := q.New(1)
	m.MessageInfo, m.Context = transport.MessageInfo{From: from, Tag: tag, Size: 1}, context
	q.Add(m)
	return m
}

// announce adds the announcement of a rendezvous message.
func announce(q *TaggedQueue, context uint32, from int, number uint32) *Tagged {
	m := &Tagged{MessageInfo: transport.MessageInfo{From: from}, Context: context, Rendezvous: true, Number: number}
	q.Add(m)
	return m
}

func pattern(context uint32, from, tag int) *Pattern {
	return &Pattern{From: from, Match: transport.Match{Context: context, Tag: tag}}
}

func TestAReceiveFindsTheFirstMessageThatMatches(t *testing.T) {
	var q TaggedQueue
	messages := []*Tagged{
		arrive(&q, 1, 1, 5), arrive(&q, 2, 2, 5), arrive(&q, 1, 2, 6), arrive(&q, 1, 1, 6),
		arrive(&q, 1, 2, 5), arrive(&q, 1, 1, 5), arrive(&q, 1, 0, 0),
	}
	for _, c := range []struct {
		pattern *Pattern
		want    int // -1: none
	}{
		{pattern(1, 1, 5), 0}, {pattern(1, 1, 6), 3}, {pattern(1, 2, 5), 4}, {pattern(2, 2, 5), 1},
		{pattern(1, transport.Any, 5), 0}, {pattern(1, transport.Any, 6), 2}, {pattern(1, 2, transport.Any), 2},
		{pattern(2, transport.Any, transport.Any), 1}, {pattern(1, transport.Any, 0), 6},
		{pattern(1, 1, 7), -1}, {pattern(2, 1, 5), -1}, {pattern(3, transport.Any, transport.Any), -1},
	} {
		var want *Tagged
		if c.want >= 0 {
			want = messages[c.want]
		}
		if got := q.Find(c.pattern); got != want {
			t.Errorf("%+v finds %+v, want message %d", c.pattern, got, c.want)
		}
	}
}

func TestMessagesOfOneMatchAreReceivedInTheOrderOfTheirArrival(t *testing.T) {
	var q TaggedQueue
	p := pattern(1, transport.Any, transport.Any)
	want := []*Tagged{arrive(&q, 1, 2, 9), arrive(&q, 1, 1, 3), announce(&q, 1, 2, 1), arrive(&q, 1, 2, 9)}
	for i, m := range want {
		got := q.Find(p)
		if got != m {
			t.Fatalf("message %d is %+v", i, got)
		}
		if !q.Remove(got) || q.Remove(got) {
			t.Errorf("message %d is not there once", i)
		}
	}
	if q.Find(p) != nil {
		t.Error("a message is left")
	}
}

func TestAWithdrawnMessageIsGone(t *testing.T) {
	var q TaggedQueue
	announce(&q, 1, 1, 7)
	other, later := announce(&q, 1, 2, 7), announce(&q, 1, 1, 8)
	arrive(&q, 2, 1, 5)
	q.Withdraw(1, 7)
	q.Withdraw(1, 0)
	if q.Find(pattern(2, 1, 5)) == nil {
		t.Error("a withdrawal drops an eager message")
	}
	if got := q.Find(pattern(1, transport.Any, transport.Any)); got != other {
		t.Errorf("the first message is %+v", got)
	}
	if got := q.Find(pattern(1, 1, transport.Any)); got != later {
		t.Errorf("the first message of rank 1 is %+v", got)
	}
}

func TestAMessageThatIsWithdrawnWhileItIsPulledEndsThatWait(t *testing.T) {
	var q TaggedQueue
	m := announce(&q, 1, 1, 7)
	var ended error
	m.Done = func(err error) { ended = err }
	q.Remove(m)
	q.Request(m)
	if q.Requested(1, 7) != m || q.Requested(2, 7) != nil || q.Requested(1, 8) != nil {
		t.Error("another message is pulled")
	}
	q.Withdraw(1, 8)
	if ended != nil {
		t.Errorf("another message's withdrawal ends it with %v", ended)
	}
	q.Withdraw(1, 7)
	if !errors.Is(ended, ErrWithdrawn) {
		t.Errorf("the wait ends with %v", ended)
	}
	q.EndRequest(m)
	if q.Requested(1, 7) != nil {
		t.Error("it is still pulled")
	}
}

func TestALostRankTakesOnlyItsAnnouncementsAlong(t *testing.T) {
	var q TaggedQueue
	announce(&q, 1, 1, 1)
	eager, other := arrive(&q, 1, 1, 5), announce(&q, 1, 2, 1)
	q.Lose(1)
	if got := q.Find(pattern(1, 1, transport.Any)); got != eager {
		t.Errorf("of rank 1 there is %+v", got)
	}
	if got := q.Find(pattern(1, 2, transport.Any)); got != other {
		t.Errorf("of rank 2 there is %+v", got)
	}
}

func TestAReleasedContextKeepsOnlyAnnouncements(t *testing.T) {
	var q TaggedQueue
	eager := []*Tagged{arrive(&q, 1, 1, 0), arrive(&q, 1, 2, 0)}
	other := arrive(&q, 2, 1, 0)
	announced := announce(&q, 1, 1, 1)
	if got := q.Release(1); len(got) != 2 || got[0] != eager[0] || got[1] != eager[1] {
		t.Errorf("released are %+v", got)
	}
	if got := q.Find(pattern(1, transport.Any, transport.Any)); got != announced {
		t.Errorf("the first message of context 1 is %+v", got)
	}
	if got := q.Find(pattern(2, transport.Any, transport.Any)); got != other {
		t.Errorf("the first message of context 2 is %+v", got)
	}
}

func TestTheMemoryOfReceivedMessagesIsUsedAgain(t *testing.T) {
	var q TaggedQueue
	for range 2 * sparesMost {
		m := q.New(100)
		m.Got, m.Type = 1, "bytes"
		q.Recycle(m)
	}
	if m := q.New(50); len(m.Data) != 50 || cap(m.Data) < 100 || m.Got != 0 || m.Type != "" {
		t.Errorf("a new message is %+v", m)
	}
	for range 2 * sparesMost {
		q.Recycle(new(Tagged))
	}
	if len(q.spare) != sparesMost {
		t.Errorf("%d messages are kept, want %d", len(q.spare), sparesMost)
	}
	if m := q.New(200); len(m.Data) != 200 {
		t.Errorf("a longer message has %d bytes", len(m.Data))
	}
}

func TestEagerMessagesThatNobodyReceivesAreBounded(t *testing.T) {
	var c Credits
	const size = EagerMax - transport.MessageCost // so that a whole number of them is the bound
	for i := range transport.TaggedMax / EagerMax {
		if !c.Use(size) {
			t.Fatalf("the credits do not suffice for message %d", i)
		}
	}
	if c.Use(0) {
		t.Error("the credits suffice for a message beyond the bound")
	}
	c.Return(transport.MessageCost)
	if c.Use(1) || !c.Use(0) {
		t.Error("the credits suffice for something else than was returned")
	}
	if c.Refund(size); !c.Use(size) || c.Use(0) {
		t.Error("a message that is sent by rendezvous after all gives back something else than it took")
	}
}

func TestAnEmptyMessageCostsCreditsToo(t *testing.T) {
	var c Credits
	n := 0
	for c.Use(0) {
		n++
	}
	if n != transport.TaggedMax/transport.MessageCost {
		t.Errorf("%d empty messages are sent, want %d", n, transport.TaggedMax/transport.MessageCost)
	}
}

func TestCreditsAreReturnedInSteps(t *testing.T) {
	var mine, theirs Credits
	used, returned := 0, 0
	for i := 0; mine.Use(i % EagerMax); i += 1000 {
		used += i%EagerMax + transport.MessageCost
		if due := theirs.Consume(i % EagerMax); due > 0 {
			if due < returnStep {
				t.Errorf("%d credits are returned", due)
			}
			if returned += due; returned > used {
				t.Fatalf("%d credits are returned, of %d", returned, used)
			}
			mine.Return(due)
		}
		if mine.used > returnStep+EagerMax {
			t.Fatalf("all messages are received, and %d credits are in use", mine.used)
		}
		if i > 100*transport.TaggedMax {
			return
		}
	}
	t.Error("all messages are received, and no other may be sent")
}

func TestAPeerThatSendsWithoutCreditsIsNoticed(t *testing.T) {
	var mine, theirs Credits
	for i := range 100_000 {
		size := i * 7919 % EagerMax
		if !mine.Use(size) {
			t.Fatalf("message %d: the credits do not suffice although all messages are received", i)
		}
		if !theirs.Arrive(size) {
			t.Fatalf("message %d, for which the credits sufficed, is refused", i)
		}
		mine.Return(theirs.Consume(size))
	}
	for mine.Use(0) {
		if !theirs.Arrive(0) {
			t.Fatal("a message for which the credits sufficed is refused")
		}
	}
	for i := 0; theirs.Arrive(0); i++ {
		if i > returnStep/transport.MessageCost {
			t.Fatal("messages without credits are accepted")
		}
	}
}

func TestAPeerThatReturnsTooMuchGivesNoCredit(t *testing.T) {
	var c Credits
	c.Use(0)
	c.Return(1 << 40)
	n := 0
	for c.Use(0) {
		n++
	}
	if n != transport.TaggedMax/transport.MessageCost {
		t.Errorf("%d empty messages are sent, want %d", n, transport.TaggedMax/transport.MessageCost)
	}
}

func TestARankThatAnnouncesMoreThanItMayIsFound(t *testing.T) {
	var q TaggedQueue
	announce := func(from, n int) (last *Tagged) {
		for range n {
			last = &Tagged{MessageInfo: transport.MessageInfo{From: from}, Rendezvous: true}
			q.Add(last)
		}
		return last
	}
	announce(1, 2*AnnouncedMax)
	if q.Overrun(1) {
		t.Error("a rank that announces what it may is found")
	}
	m := announce(1, 1)
	announce(2, 1)
	if !q.Overrun(1) || q.Overrun(0) || q.Overrun(2) || q.Overrun(3) {
		t.Error("not the rank that announces more is found, and it alone")
	}
	if q.Remove(m); q.Overrun(1) {
		t.Error("a message that is received still counts")
	}
	if q.Lose(1); q.Overrun(1) || q.Held() != transport.MessageCost {
		t.Errorf("%d bytes are held", q.Held())
	}
}

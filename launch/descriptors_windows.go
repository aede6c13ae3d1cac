package launch

import "github.com/chorale-go/chorale/internal/proof"

// checkDescriptors returns no error: Windows has no limit that matters here.
func checkDescriptors(int) (strangers int, err error) { return proof.UnprovenMax, nil }

# verify runs CI's checks of the source; test is the README's test command.

.PHONY: test race verify fuzz soak bench compare truth

test:
	go test ./...

# Nothing in these directories is concurrent.
SEQUENTIAL = docs|draw|model|sched|sim

# verify has vetted everything. What takes longest comes first.
race:
	! grep -rnE '^\s*go [a-z]|\.Go\(' --include='*.go' $(subst |, ,$(SEQUENTIAL))
	GORACE=atexit_sleep_ms=0 go test -race -short -vet=off -timeout 20m ./transport/... ./command ./launch \
		$$(go list ./... | grep -vE '^([^/]*/){3}($(SEQUENTIAL))(/|$$)')

verify:
	test -z "$$(gofmt -l .)"
	go vet ./...
	go tool staticcheck ./...
	GOOS=darwin GOARCH=arm64 go vet ./...
	GOOS=windows GOARCH=amd64 go vet ./...
	go mod tidy -diff

# fuzz runs every fuzz test for a time: make fuzz FUZZTIME=10m.
FUZZTIME = 10s

fuzz:
	.ci/fuzz $(FUZZTIME)

# soak runs random jobs whose ranks are killed: make soak SOAKTIME=1h.
SOAKTIME = 10m

soak:
	go run ./internal/soak -for $(SOAKTIME)

bench:
	go test -run '^$$' -bench . -benchmem ./...

# compare takes about 20 minutes, 27 at most, and writes docs/performance.md, .json and
# .svg. For a part: make compare ARGS='--transports tcp --ops allreduce --n 2,4'.
ARGS = --write

compare:
	go run ./compare $(ARGS)

# truth measures this machine and then everything, beside its simulation, and writes
# docs/truth.md and .svg. For a part: make truth TRUTHARGS='--transports shm --n 2'.
TRUTHARGS = --write

truth:
	go run ./truth $(TRUTHARGS)

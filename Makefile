# What a newcomer needs: make demo, make test. Both install MariaDB if missing.
GO ?= go
FUZZTIME ?= 5000x

.PHONY: help
help:
	@echo "make demo     play the main story on a private MariaDB (KEEP=1 leaves it running)"
	@echo "make test     lint, unit tests and tests on a private MariaDB with the race detector, fuzz targets"
	@echo "make build    bin/fenceproxy"
	@echo "make lint     go vet, staticcheck, gofumpt"
	@echo "make fuzz     each fuzz target for FUZZTIME (now $(FUZZTIME))"
	@echo "make bench    benchmarks of the packages"

.PHONY: build
build:
	$(GO) build -o bin/fenceproxy ./cmd/fenceproxy

.PHONY: demo
demo: deps build
	./bin/fenceproxy demo $(if $(KEEP),--keep)

.PHONY: test
test: deps build lint
	$(GO) test -race -timeout 15m ./...
	$(MAKE) fuzz

.PHONY: lint
lint:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@unformatted=$$($(GO) tool gofumpt -l .); if [ -n "$$unformatted" ]; then echo "gofumpt would change:"; echo "$$unformatted"; exit 1; fi

.PHONY: fuzz
fuzz:
	@GO="$(GO)" FUZZTIME="$(FUZZTIME)" scripts/fuzz

.PHONY: bench
bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# The servers and clients that the demo and the tests talk to.
.PHONY: deps
deps:
	@scripts/install-deps

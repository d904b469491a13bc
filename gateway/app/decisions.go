package app

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// replicaNumber is the number of a replica where there is no room for its id.
func replicaNumber(id uuid.UUID) uint16 { return binary.BigEndian.Uint16(id[:2]) }

// replicaNamed names the replica of a number by how its id begins.
func replicaNamed(_ context.Context, number uint16, _ time.Time) (string, error) {
	return fmt.Sprintf("%04x", number), nil
}

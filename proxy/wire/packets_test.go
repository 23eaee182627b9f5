package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

const testCapabilities = ClientProtocol41 | ClientSecureConnection | ClientPluginAuth | ClientConnectAttrs |
	ClientPluginAuthLenEnc | ClientConnectWithDB

// greeting is MariaDB 10.11's, shortened: capabilities with CLIENT_SSL and
// CLIENT_COMPRESS, and every extended one.
func greeting() []byte {
	g := append([]byte{10}, "5.5.5-10.11.19-MariaDB\x00"...)
	g = append(g, 42, 0, 0, 0)
	g = append(g, "12345678\x00"...)
	low := ClientProtocol41 | ClientSSL | ClientCompress | ClientSecureConnection
	high := (ClientPluginAuth | ClientDeprecateEOF) >> 16
	g = append(g, byte(low), byte(low>>8), 45, 2, 0, byte(high), byte(high>>8), 21)
	g = append(g, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0)
	g = append(g, "abcdefghijkl\x00mysql_native_password\x00"...)
	return g
}

func response(capabilities uint32, rest string) []byte {
	r := []byte{byte(capabilities), byte(capabilities >> 8), byte(capabilities >> 16), byte(capabilities >> 24), 0, 0, 0, 1, 45}
	r = append(r, make([]byte, 23)...)
	return append(r, rest...)
}

func TestGreetingIsNarrowedInPlace(t *testing.T) {
	original := greeting()
	g, err := DecodeGreeting(greeting())
	if err != nil {
		t.Fatal(err)
	}
	if g.ServerVersion != "5.5.5-10.11.19-MariaDB" || g.ConnectionID != 42 {
		t.Errorf("read %+v", g)
	}
	g.Narrow(^(ClientSSL | ClientCompress), MariaDBExtendedMetadata)
	again, err := DecodeGreeting(g.Packet())
	if err != nil {
		t.Fatal(err)
	}
	if again.Capabilities&(ClientSSL|ClientCompress) != 0 || again.Capabilities&ClientDeprecateEOF == 0 {
		t.Errorf("capabilities %#x", again.Capabilities)
	}
	if again.Extended != MariaDBExtendedMetadata {
		t.Errorf("extended capabilities %#x", again.Extended)
	}
	if changed := differences(original, g.Packet()); changed > 3 {
		t.Errorf("%d bytes changed, want only those of the capabilities", changed)
	}
}

func differences(a, b []byte) int {
	if len(a) != len(b) {
		return len(a) + len(b)
	}
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

func TestResponse(t *testing.T) {
	attributes := "\x0bfence_owner\x01A" + "\x0bfence_token\x017"
	tests := []struct {
		name         string
		capabilities uint32
		rest         string
		want         Response
	}{
		{
			"everything", testCapabilities,
			"app\x00\x04auth" + "reports\x00" + "mysql_native_password\x00" + string(rune(len(attributes))) + attributes,
			Response{User: "app", Database: "reports", Plugin: "mysql_native_password", Attributes: map[string]string{"fence_owner": "A", "fence_token": "7"}},
		},
		{
			"no database, no attributes", testCapabilities &^ (ClientConnectWithDB | ClientConnectAttrs),
			"app\x00\x00caching_sha2_password\x00",
			Response{User: "app", Plugin: "caching_sha2_password"},
		},
		{
			"plugin without its NUL", testCapabilities &^ (ClientConnectWithDB | ClientConnectAttrs),
			"app\x00\x00client_ed25519",
			Response{User: "app", Plugin: "client_ed25519"},
		},
		{
			"an SSLRequest", ClientProtocol41 | ClientSSL, "",
			Response{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeResponse(response(tt.capabilities, tt.rest))
			if err != nil {
				t.Fatal(err)
			}
			if got.User != tt.want.User || got.Database != tt.want.Database || got.Plugin != tt.want.Plugin || !reflect.DeepEqual(got.Attributes, tt.want.Attributes) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestEveryPrefixOfAResponseIsReadOrRefused(t *testing.T) {
	attributes := "\x0bfence_owner\x01A"
	whole := response(testCapabilities, "app\x00\x04authdb\x00mysql_native_password\x00"+string(rune(len(attributes)))+attributes)
	for n := range whole {
		r, err := DecodeResponse(bytes.Clone(whole[:n]))
		if err == nil && r.Attributes != nil {
			t.Errorf("%d of %d bytes were read whole", n, len(whole))
		}
	}
}

func TestOldProtocolIsNamed(t *testing.T) {
	if _, err := DecodeResponse(response(ClientSecureConnection, "app\x00")); !errors.Is(err, ErrProtocol) {
		t.Errorf("client before 4.1: %v", err)
	}
	if _, err := DecodeGreeting(append([]byte{9}, "3.23\x00"...)); !errors.Is(err, ErrProtocol) {
		t.Errorf("server with handshake version 9: %v", err)
	}
}

func TestChangeUser(t *testing.T) {
	attributes := "\x0bfence_token\x018"
	packet := "\x11app\x00\x04authdb\x00\x2d\x00mysql_native_password\x00" + string(rune(len(attributes))) + attributes
	got, err := DecodeChangeUser([]byte(packet), testCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	want := ChangeUser{User: "app", Database: "db", Plugin: "mysql_native_password", Attributes: map[string]string{"fence_token": "8"}}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

func TestOKSurvivesARoundTrip(t *testing.T) {
	for _, capabilities := range []uint32{ClientProtocol41, ClientProtocol41 | ClientSessionTrack} {
		want := OK{AffectedRows: 3, LastInsertID: 1 << 40, Status: StatusAutocommit | StatusInTransaction, Warnings: 2, Info: []byte("Rows matched: 3  Changed: 3  Warnings: 2")}
		packet := AppendOK(nil, want, capabilities)
		got, err := DecodeOK(packet, capabilities)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("capabilities %#x: got %+v, %v", capabilities, got, err)
		}
		if err := SetStatus(packet, StatusAutocommit); err != nil {
			t.Fatal(err)
		}
		want.Status = StatusAutocommit
		if got, err := DecodeOK(packet, capabilities); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("after SetStatus: got %+v, %v", got, err)
		}
	}
}

func TestRowsMatched(t *testing.T) {
	tests := []struct {
		info string
		n    uint64
		ok   bool
	}{
		{"Rows matched: 12  Changed: 0  Warnings: 0", 12, true},
		{"Rows matched: 0  Changed: 0  Warnings: 0", 0, true},
		{"Records: 1  Duplicates: 0  Warnings: 0", 0, false},
		{"", 0, false},
		{"Rows matched: ", 0, false},
	}
	for _, tt := range tests {
		if n, ok := RowsMatched([]byte(tt.info)); n != tt.n || ok != tt.ok {
			t.Errorf("%q: got %d, %v", tt.info, n, ok)
		}
	}
}

func TestErrorSurvivesARoundTripAndIsClippedWhole(t *testing.T) {
	want := Error{Number: 1644, State: "45000", Message: "fenceproxy: write rejected"}
	got, err := DecodeError(AppendError(nil, &want))
	if err != nil || *got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	long := Error{Number: 1644, State: "45000", Message: strings.Repeat("é", 400)}
	got, err = DecodeError(AppendError(nil, &long))
	if err != nil || len(got.Message) != 510 || strings.ContainsRune(got.Message, '�') {
		t.Errorf("a message of 800 bytes became %d bytes, %v", len(got.Message), err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(greeting(), testCapabilities)
	f.Add(response(testCapabilities, "app\x00\x04authdb\x00p\x00\x00"), testCapabilities)
	f.Add([]byte("\x11app\x00\x00db\x00\x2d\x00p\x00\x00"), testCapabilities)
	f.Add([]byte{0, 3, 0, 2, 0, 0, 0}, testCapabilities|ClientSessionTrack)
	f.Add([]byte{0xff, 0x6c, 0x06, '#', '4', '5', '0', '0', '0', 'x'}, testCapabilities)
	f.Fuzz(func(t *testing.T, packet []byte, capabilities uint32) {
		// None may panic, and none may return what it did not check: each
		// error is the packet's, whatever the bytes.
		if g, err := DecodeGreeting(bytes.Clone(packet)); err == nil {
			g.Narrow(^ClientSSL, 0)
			if len(g.Packet()) != len(packet) {
				t.Fatal("narrowing changed the length")
			}
		}
		if r, err := DecodeResponse(bytes.Clone(packet)); err == nil {
			r.Narrow(capabilities, 0)
			if len(r.Packet()) != len(packet) {
				t.Fatal("narrowing changed the length")
			}
		}
		_, _ = DecodeChangeUser(packet, capabilities)
		_, _ = DecodeOK(packet, capabilities)
		_, _ = DecodeEOF(packet)
		_, _ = DecodeError(packet)
		_, _ = DecodePrepareOK(packet)
		_, _ = DecodeStatementID(packet)
		if n, err := DecodeColumnCount(packet); err == nil && n > 1<<16 {
			t.Fatalf("%d columns", n)
		}
		_ = SetStatus(bytes.Clone(packet), 0)
		_ = SetEOFStatus(bytes.Clone(packet), 0)
	})
}

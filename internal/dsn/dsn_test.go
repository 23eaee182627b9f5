package dsn

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestPoint(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"URL", "mysql://app:secret@db.example:3306/app?charset=utf8mb4", "mysql://app:secret@127.0.0.1:4000/app?charset=utf8mb4"},
		{"URL without a port", "mysql://app@db/app", "mysql://app@127.0.0.1:4000/app"},
		{"URL without a user", "mariadb://db/app", "mariadb://127.0.0.1:4000/app"},
		{"URL without a path", "mysql://app:secret@db", "mysql://app:secret@127.0.0.1:4000"},
		{"URL with escapes in the password", "mysql://app:p%40s%2Fs@db:1/app", "mysql://app:p%40s%2Fs@127.0.0.1:4000/app"},
		{"URL with a raw @ in the password", "mysql://app:p@ss@db:1/app", "mysql://app:p@ss@127.0.0.1:4000/app"},
		{"SQLAlchemy", "mysql+pymysql://app:secret@db/app", "mysql+pymysql://app:secret@127.0.0.1:4000/app"},
		{"Rails", "mysql2://app:secret@db/app?pool=5", "mysql2://app:secret@127.0.0.1:4000/app?pool=5"},
		{"IPv6", "mysql://app@[::1]:3306/app", "mysql://app@127.0.0.1:4000/app"},
		{"JDBC", "jdbc:mysql://db:3306/app?user=app&password=secret", "jdbc:mysql://127.0.0.1:4000/app?user=app&password=secret"},
		{"JDBC with two hosts", "jdbc:mariadb://one:3306,two:3306/app", "jdbc:mariadb://127.0.0.1:4000/app"},
		{"JDBC with a mode", "jdbc:mariadb:sequential://one:3306/app", "jdbc:mariadb:sequential://127.0.0.1:4000/app"},
		{"driver", "app:secret@tcp(db:3306)/app?parseTime=true", "app:secret@tcp(127.0.0.1:4000)/app?parseTime=true"},
		{"driver over a socket", "app:secret@unix(/run/mysqld/mysqld.sock)/app", "app:secret@tcp(127.0.0.1:4000)/app"},
		{"driver without an address", "app:secret@/app", "app:secret@tcp(127.0.0.1:4000)/app"},
		{"driver with @, : and / in the password", "app:p@:/ss@tcp(db)/app", "app:p@:/ss@tcp(127.0.0.1:4000)/app"},
		{"driver with an escaped slash in a parameter", "app@tcp(db)/app?loc=Europe%2FPrague", "app@tcp(127.0.0.1:4000)/app?loc=Europe%2FPrague"},
		{"driver with nothing", "/", "tcp(127.0.0.1:4000)/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Point(tt.in, "127.0.0.1", "4000")
			if err != nil || got != tt.want {
				t.Errorf("Point(%q)\n got %q, %v\nwant %q", tt.in, got, err, tt.want)
			}
		})
	}
}

func TestOtherTextIsRefusedWithoutRepeatingIt(t *testing.T) {
	for _, in := range []string{"", "secret", "postgres://app:secret@db/app", "jdbc:postgresql://db/app?password=secret", "app:secret@tcp[db]/app"} {
		got, err := Point(in, "127.0.0.1", "4000")
		if !errors.Is(err, ErrForm) {
			t.Errorf("Point(%q) = %q, %v", in, got, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats the text: %v", err)
		}
	}
}

func FuzzPoint(f *testing.F) {
	f.Add("app:secret@tcp(db:3306)/app?parseTime=true")
	f.Add("mysql://app:secret@db/app")
	f.Add("app:p@/ss@unix(/x/y)/app")
	f.Add("/?(0)/")
	f.Fuzz(func(t *testing.T, in string) {
		out, err := Point(in, "127.0.0.1", "4000")
		if err != nil {
			return
		}
		if !strings.Contains(out, "127.0.0.1:4000") {
			t.Fatalf("%q became %q", in, out)
		}
		// What the driver itself accepts must differ in the address alone.
		before, err := mysql.ParseDSN(in)
		if err != nil || scheme.MatchString(in) || strings.HasPrefix(in, "jdbc:") {
			return
		}
		after, err := mysql.ParseDSN(out)
		if err != nil {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
		if after.Addr != "127.0.0.1:4000" || after.User != before.User || after.Passwd != before.Passwd || after.DBName != before.DBName {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

// A filter that calls a C library and reports each result as a line of the message, so that two libraries can be
// compared.
#pragma clang diagnostic ignored "-Wformat"

static char out[1 << 20];
static int used;

static void byte(unsigned char c) { out[used++] = c; }

// text is put as the inside of a JSON string.
static void text(const char *s) {
	for (; *s; s++) {
		unsigned char c = *s;
		if (c == '"' || c == '\\' || c < ' ') {
			byte('\\');
			byte('u');
			byte('0');
			byte('0');
			byte("0123456789abcdef"[c >> 4]);
			byte("0123456789abcdef"[c & 15]);
		} else {
			byte(c);
		}
	}
}

static void number(long long n) {
	char digits[24];
	int i = sizeof digits - 1;
	unsigned long long u = n < 0 ? -(unsigned long long)n : n;
	digits[i] = 0;
	do digits[--i] = '0' + u % 10; while (u /= 10);
	if (n < 0) byte('-');
	text(digits + i);
}

static void line(const char *what) {
	byte('\\');
	byte('n');
	text(what);
	text(": ");
}

#define N(expression) do { line(#expression); number(expression); } while (0)
#define SIGN(expression) do { int sign = expression; line(#expression); number((sign > 0) - (sign < 0)); } while (0)
#define BOOL(expression) do { int is = (expression) ? 1 : 0; line(#expression); number(is); } while (0)
#define S(expression) do { line(#expression); text(expression); } while (0)
#define P(...) do { char b[2000]; int n = snprintf(b, sizeof b, __VA_ARGS__); line(#__VA_ARGS__); text(b); text(" = "); number(n); } while (0)

static void printing(void) {
	P("");
	P("plain");
	P("%%|%5d|%-5d|%05d|%+d|% d|%d", 42, 42, 42, 42, 42, -42);
	P("%i|%.3d|%.0d|%8.3d|%-8.3d|%08.3d|%+.3d", 7, 7, 0, 7, 7, 7, 7);
	P("%d|%u|%x", -2147483647 - 1, 4294967295u, 4294967295u);
	P("%lld|%llu|%llx|%jd", -9223372036854775807ll - 1, 18446744073709551615ull, 18446744073709551615ull, (intmax_t)-3);
	P("%d|%lld|%d|%lld", 1, 2ll, 3, 4ll);
	P("%ld|%lu|%zu|%td", -5l, 5ul, (size_t)6, (ptrdiff_t)-6);
	P("%hd|%hu|%hhd|%hhu|%hhx", 70000, 70000, 300, 300, -1);
	P("%x|%X|%#x|%#X|%#x|%08x|%#08x|%-#8x|", 255, 255, 255, 255, 0, 255, 255, 255);
	P("%o|%#o|%#o|%.5o|%#.0o", 8, 8, 0, 8, 0);
	P("%*d|%-*d|%*d|%.*d", 6, 1, 6, 2, -6, 3, 4, 4);
	P("%.*d|", -1, 5);
	P("%c|%5c|%-5c|", 'a', 'b', 'c');
	P("%s|%10s|%-10s|%.2s|%10.2s|%.*s", "text", "text", "text", "text", "text", 3, "text");
	P("%.0s|%s", "text", "");
	P("%p", (void *)0x12345678);
	P("%f|%.2f|%.0f|%#.0f|%10.3f|%-10.3f|%010.3f|%+f|% f", 3.14159, 2.675, 2.5, 2.5, 3.14159, 3.14159, -3.14159, 1.0, 1.0);
	P("%f|%f|%F", 1e300, 1e-300, 1e10);
	P("%e|%.0e|%#.0e|%.3E|%12.2e|%-12.2e|%012.2e", 12345.678, 12345.678, 12345.678, 12345.678, 12345.678, 12345.678, -12345.678);
	P("%e|%e|%e", 0.0, 1e-5, 1e100);
	P("%g|%g|%g|%g|%g|%g|%g", 100000.0, 1000000.0, 0.0001, 0.00001, 123456789.0, 0.0, 1.5);
	P("%.3g|%.10g|%.0g|%#g|%#.3g|%G|%g", 1234.5, 1234.5, 1234.5, 1.5, 1000.0, 1e-10, 1e100);
	P("%a|%a|%A|%.2a|%a|%a", 1.0, 0.5, 255.75, 1.75, 0.0, -1e-300);
	P("%20a|%-20a|%020a|", 1.5, 1.5, 1.5);
	P("%f|%F|%e|%g|%5f|%05f|%-5f|%+f", 1.0 / 0.0, -1.0 / 0.0, 1.0 / 0.0, 0.0 / 0.0, 1.0 / 0.0, 1.0 / 0.0, 1.0 / 0.0, 1.0 / 0.0);
	P("%.30f|%.25e|%.25g", 0.1, 0.1, 0.1);
	P("%.1200f", 1.5);
	P("%.1200e", 1.5);
	P("%d %s %f %s %lld", 1, "two", 3.0, "four", 5ll);
	int count = -1;
	P("abc%ndef", &count);
	N(count);
	char small[8];
	N(snprintf(small, sizeof small, "%s", "longer than that"));
	S(small);
	N(snprintf(small, 1, "%d", 12345));
	S(small);
	N(snprintf(small, 0, "%d", 12345));
	N(sprintf(out + used + 1000, "%s-%d", "sprintf", 3));
	S(out + used + 1000);
}

static void searching(void) {
	const char *hay = "the needle in the haystack, the needle";
	N(strlen(hay));
	N(strlen(""));
	N(strchr(hay, 'n') - hay);
	N(strchr(hay, 0) - hay);
	BOOL(strchr(hay, 'Z'));
	BOOL(strchr("", 'a'));
	N(strstr(hay, "needle") - hay);
	N(strstr(hay, "needle in the haystack, the needle") - hay);
	N(strstr(hay, "") - hay);
	BOOL(strstr(hay, "needles"));
	BOOL(strstr("", "a"));
	BOOL(strstr("aab", "aabb"));
	N((char *)memchr(hay, 'h', 38) - hay);
	BOOL(memchr(hay, 'n', 3));
	BOOL(memchr(hay, 't', 0));
	N(strspn("1234abc", "0123456789"));
	N(strspn("abc", ""));
	N(strspn("", "abc"));
	N(strcspn("key=value", "=:"));
	N(strcspn("key", "=:"));
	N(strcspn("key", ""));
	SIGN(strcmp("abc", "abd"));
	SIGN(strcmp("abc", "abc"));
	SIGN(strcmp("abcd", "abc"));
	SIGN(strcmp("", "a"));
	SIGN(strcmp("\xff", "a"));
	SIGN(strncmp("abcx", "abcy", 3));
	SIGN(strncmp("abcx", "abcy", 4));
	SIGN(strncmp("ab", "abc", 9));
	SIGN(strncmp("b", "a", 0));
	SIGN(strncasecmp("HeLLo", "hEllO", 9));
	SIGN(strncasecmp("HeLLo", "help", 3));
	SIGN(strncasecmp("HeLLo", "help", 4));
	SIGN(strncasecmp("[", "a", 1));
	SIGN(memcmp("a\0b", "a\0c", 3));
	SIGN(memcmp("a\0b", "a\0b", 3));
	SIGN(memcmp("b", "a", 0));
}

static void numbers(void) {
	static const char *const texts[] = {"0", "42", " \t\n-42", "+7x", "0x1F", "0X1fg", "0x", "0xg", "010", "z", "", "-", "2147483647", "2147483648", "-2147483648", "-2147483649",
		"4294967295", "4294967296", "99999999999999999999", "-1", "-4294967295", "-99999999999999999999", "zz", "7f", "1 2", "--1"};
	static const int bases[] = {0, 2, 8, 10, 16, 36};
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		line(texts[i]);
		if (i != 13 && i < 15) number(atoi(texts[i])); // beyond an int nothing is promised
		for (unsigned j = 0; j < sizeof bases / sizeof *bases; j++) {
			char *end = 0;
			text(" ");
			number(strtol(texts[i], &end, bases[j]));
			text("@");
			number(end - texts[i]);
			text(" ");
			number(strtoul(texts[i], &end, bases[j]));
			text("@");
			number(end - texts[i]);
		}
	}
	N(strtol("12", 0, 10));
}

static void copying(void) {
	char b[32] = "0123456789abcdef";
	memmove(b + 2, b, 8);
	S(b);
	memmove(b, b + 2, 8);
	S(b);
	BOOL(memcpy(b, "XY", 2) == b);
	S(b);
	memset(b + 4, '.', 4);
	S(b);
	BOOL(strcpy(b, "copied") == b);
	S(b);
	S(b + 7);
	strncpy(b, "abc", 10);
	S(b);
	N(b[9]);
	N(b[10]);
	strncpy(b, "abcdef", 3);
	b[4] = 0;
	S(b);
}

static void classes(void) {
	line("classes");
	for (int c = -1; c < 257; c++) {
		number(!!isupper(c) | !!isalpha(c) << 1 | !!isspace(c) << 2 | !!isgraph(c) << 3 | !!isprint(c) << 4 | !!isdigit(c) << 5 | !!isxdigit(c) << 6 | !!isalnum(c) << 7);
		text(" ");
		number(tolower(c));
		text(" ");
		number(toupper(c));
		text(",");
	}
}

static void allocating(void) {
	char *zero = calloc(100, 7);
	int sum = 0;
	for (int i = 0; i < 700; i++) sum += zero[i];
	N(sum);
	void *volatile none = calloc(1 << 20, 1 << 20);
	BOOL(none);
	none = malloc(0xf0000000);
	BOOL(none);
	char *copy = strdup("copy me");
	S(copy);
	copy = realloc(copy, 5000);
	S(copy);
	memset(copy + 8, 'x', 4992);
	copy = realloc(copy, 3);
	copy[2] = 0;
	S(copy);
	free(copy);
	free(0);
	copy = realloc(0, 10);
	BOOL(copy);
	free(copy);
	// Blocks of many sizes, each filled with its number, in and out.
	static char *blocks[200];
	static int sizes[200];
	unsigned seed = 1, wrong = 0;
	for (int turn = 0; turn < 5000; turn++) {
		seed = seed * 1103515245 + 12345;
		int i = (seed >> 8) % 200;
		if (blocks[i]) {
			for (int k = 0; k < sizes[i]; k++) wrong += blocks[i][k] != (char)i;
			free(blocks[i]);
			blocks[i] = 0;
			continue;
		}
		sizes[i] = (seed >> 16) % 3000;
		blocks[i] = malloc(sizes[i]);
		wrong += (uintptr_t)blocks[i] % 16 != 0;
		memset(blocks[i], i, sizes[i]);
	}
	N(wrong);
}

__attribute__((export_name("filter"))) char *filter(char *tag, int tag_len, uint32_t sec, uint32_t nsec, char *record, int record_len) {
	used = 0;
	for (const char *s = "{\"message\":\""; *s; s++) byte(*s);
	printing();
	searching();
	numbers();
	copying();
	classes();
	allocating();
	byte('"');
	byte('}');
	byte(0);
	return out;
}

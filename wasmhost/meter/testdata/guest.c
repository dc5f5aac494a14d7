// The same kind of guest in C: text goes into a buffer, an export works on it there and tells the new length.
#include <stdio.h>
#include <string.h>

static char buffer[64 << 10];

__attribute__((export_name("text"))) char *text(void) { return buffer; }

__attribute__((export_name("mask"))) unsigned mask(unsigned n) {
  for (unsigned i = 0; i < n; i++)
    if (buffer[i] >= '0' && buffer[i] <= '9') buffer[i] = '#';
  return n;
}

static int word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// words is the worst case for the meter: loops of a few instructions.
__attribute__((export_name("words"))) unsigned words(unsigned n) {
  unsigned count = 0, i = 0;
  while (i < n) {
    while (i < n && !word(buffer[i])) i++;
    unsigned from = i;
    while (i < n && word(buffer[i])) i++;
    if (i > from) count++;
  }
  return count;
}

static __attribute__((noinline)) unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

// calls is little but calls.
__attribute__((export_name("calls"))) unsigned calls(unsigned n) { return fib(n % 16 + 8); }

__attribute__((export_name("edit"))) unsigned edit(unsigned n) {
  char out[4096];
  buffer[n] = 0;
  int len = snprintf(out, sizeof out, "%u bytes, %.3f, <%.*s>", n, n / 7.0, (int)(n < 3000 ? n : 3000), buffer);
  memcpy(buffer, out, len);
  return len;
}

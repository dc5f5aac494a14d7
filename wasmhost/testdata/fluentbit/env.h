// What Fluent Bit gives to filters that were linked without a libc.
#include <stddef.h>
#include <stdint.h>

#define ENV(result, name, ...) \
	result env_##name(__VA_ARGS__) __attribute__((import_module("env"), import_name(#name)));

ENV(int, printf, const char *, ...)
ENV(int, sprintf, char *, const char *, ...)
ENV(int, snprintf, char *, size_t, const char *, ...)
ENV(int, puts, const char *)
ENV(int, putchar, int)
ENV(int, memcmp, const void *, const void *, size_t)
ENV(void *, memcpy, void *, const void *, size_t)
ENV(void *, memmove, void *, const void *, size_t)
ENV(void *, memset, void *, int, size_t)
ENV(void *, memchr, const void *, int, size_t)
ENV(char *, strchr, const char *, int)
ENV(int, strcmp, const char *, const char *)
ENV(char *, strcpy, char *, const char *)
ENV(size_t, strlen, const char *)
ENV(int, strncmp, const char *, const char *, size_t)
ENV(char *, strncpy, char *, const char *, size_t)
ENV(int, strncasecmp, const char *, const char *, size_t)
ENV(size_t, strspn, const char *, const char *)
ENV(size_t, strcspn, const char *, const char *)
ENV(char *, strstr, const char *, const char *)
ENV(char *, strdup, const char *)
ENV(void *, malloc, size_t)
ENV(void *, calloc, size_t, size_t)
ENV(void *, realloc, void *, size_t)
ENV(void, free, void *)
ENV(int, atoi, const char *)
ENV(long, strtol, const char *, char **, int)
ENV(unsigned long, strtoul, const char *, char **, int)
ENV(int, isupper, int)
ENV(int, isalpha, int)
ENV(int, isspace, int)
ENV(int, isgraph, int)
ENV(int, isprint, int)
ENV(int, isdigit, int)
ENV(int, isxdigit, int)
ENV(int, isalnum, int)
ENV(int, tolower, int)
ENV(int, toupper, int)
ENV(void, exit, int)
ENV(int, clock_gettime, int, void *)
ENV(int64_t, clock, void)

#ifdef USE_ENV
#define printf env_printf
#define sprintf env_sprintf
#define snprintf env_snprintf
#define puts env_puts
#define putchar env_putchar
#define memcmp env_memcmp
#define memcpy env_memcpy
#define memmove env_memmove
#define memset env_memset
#define memchr env_memchr
#define strchr env_strchr
#define strcmp env_strcmp
#define strcpy env_strcpy
#define strlen env_strlen
#define strncmp env_strncmp
#define strncpy env_strncpy
#define strncasecmp env_strncasecmp
#define strspn env_strspn
#define strcspn env_strcspn
#define strstr env_strstr
#define strdup env_strdup
#define malloc env_malloc
#define calloc env_calloc
#define realloc env_realloc
#define free env_free
#define atoi env_atoi
#define strtol env_strtol
#define strtoul env_strtoul
#define isupper env_isupper
#define isalpha env_isalpha
#define isspace env_isspace
#define isgraph env_isgraph
#define isprint env_isprint
#define isdigit env_isdigit
#define isxdigit env_isxdigit
#define isalnum env_isalnum
#define tolower env_tolower
#define toupper env_toupper
#endif

// redpanda_alerts is a data transform for Redpanda's brokers, and knows nothing of weir: debug records are dropped, errors go to
// the topic alerts, and everything else is written as it came.
#include <stdint.h>
#include <string.h>

#define REDPANDA(name) __attribute__((import_module("redpanda_transform"), import_name(#name)))
REDPANDA(check_abi_version_2) void check_abi_version(void);
REDPANDA(read_batch_header)
int32_t read_batch_header(int64_t *base_offset, int32_t *records, int32_t *leader_epoch, int16_t *attributes, int32_t *last_offset_delta,
                          int64_t *base_timestamp, int64_t *max_timestamp, int64_t *producer, int16_t *producer_epoch, int32_t *base_sequence);
REDPANDA(read_next_record) int32_t read_next_record(uint8_t *attributes, int64_t *timestamp, int64_t *offset, void *buf, uint32_t size);
REDPANDA(write_record) int32_t write_record(const void *record, uint32_t n);
REDPANDA(write_record_with_options) int32_t write_record_with_options(const void *record, uint32_t n, const void *options, uint32_t options_n);

static uint8_t record[2 << 20];

// The options of a record for the topic alerts: 1, the length in zigzag form, the name.
static const uint8_t to_alerts[] = {1, 6 << 1, 'a', 'l', 'e', 'r', 't', 's'};

// severity_of finds the first severity in the record's value, which is JSON; its header stands before its text. -1: none.
static int severity_of(int32_t n) {
    static const char name[] = "\"severity\":";
    for (int32_t i = 0; i + (int32_t)sizeof name <= n; i++)
        if (!memcmp(record + i, name, sizeof name - 1)) return record[i + sizeof name - 1] - '0';
    return -1;
}

int main(void) {
    check_abi_version();
    for (;;) {
        int64_t base_offset, base_timestamp, max_timestamp, producer, timestamp, offset;
        int32_t records, leader_epoch, last_offset_delta, base_sequence;
        int16_t attributes, producer_epoch;
        uint8_t record_attributes;
        if (read_batch_header(&base_offset, &records, &leader_epoch, &attributes, &last_offset_delta, &base_timestamp, &max_timestamp, &producer,
                              &producer_epoch, &base_sequence) < 0)
            return 0; // the broker ends
        for (; records > 0; records--) {
            int32_t n = read_next_record(&record_attributes, &timestamp, &offset, record, sizeof record);
            if (n < 0) return 1; // too long: told, and begun anew
            int severity = severity_of(n);
            if (severity == 7) continue; // dropped
            int32_t written = severity >= 0 && severity <= 3 ? write_record_with_options(record, (uint32_t)n, to_alerts, sizeof to_alerts)
                                                            : write_record(record, (uint32_t)n);
            if (written != n) return 2;
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/event_file_internal.h"

#include <bit>

#include "vitrail/base/crc32c_internal.h"

namespace vitrail::train {
namespace {

// The wire format of protocol buffers: each field is a key (field number and wire type) and a value.
constexpr uint64_t kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;  // wire types

void put_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}
void put_key(std::string& to, uint64_t field, uint64_t wire_type) { put_varint(to, field << 3 | wire_type); }

template <class Bits>
void put_fixed(std::string& to, Bits bits) {
  for (size_t i = 0; i < sizeof(Bits); ++i) to += static_cast<char>(bits >> (8 * i));
}

void put_bytes(std::string& to, uint64_t field, const std::string& bytes) {
  put_key(to, field, kLengthDelimited);
  put_varint(to, bytes.size());
  to += bytes;
}

// Event: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5 (Summary).
std::string event(double wall_time, int64_t step) {
  std::string message;
  put_key(message, 1, kFixed64);
  put_fixed(message, std::bit_cast<uint64_t>(wall_time));
  put_key(message, 2, kVarint);
  put_varint(message, static_cast<uint64_t>(step));
  return message;
}

// CRCs are stored masked, because the CRC of data that contains CRCs is problematic
// (tensorflow/core/lib/hash/crc32c.h).
uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace

EventFile::EventFile(const std::filesystem::path& path, uint64_t keep) : file_(path, keep) {
  if (keep > 0) return;
  std::string first = event(0, 0);
  put_bytes(first, 3, "brain.Event:2");
  write_record(first);
}

void EventFile::add_scalar(const std::string& tag, int64_t step, double value, double seconds_since_1970) {
  std::string summary_value;  // Summary.Value: tag = 1 (string), simple_value = 2 (float)
  put_bytes(summary_value, 1, tag);
  put_key(summary_value, 2, kFixed32);
  put_fixed(summary_value, std::bit_cast<uint32_t>(static_cast<float>(value)));
  std::string summary;  // Summary: value = 1 (repeated)
  put_bytes(summary, 1, summary_value);
  std::string message = event(seconds_since_1970, step);
  put_bytes(message, 5, summary);
  write_record(message);
}

void EventFile::write_record(const std::string& event) {
  std::string record;
  put_fixed(record, static_cast<uint64_t>(event.size()));
  put_fixed(record, masked(crc32c(record.data(), 8)));
  record += event;
  put_fixed(record, masked(crc32c(event.data(), event.size())));
  file_.write(record);
}

uint64_t EventFile::flush() { return file_.sync(); }

}  // namespace vitrail::train

// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/event_file.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include "vitrail/base/crc32c.h"
#include "vitrail/base/error.h"
#include "vitrail/train/append_only_file_internal.h"

namespace vitrail::train {
namespace {

// Protocol buffers' wire format: a key (field number and kind), then the value.
constexpr uint64_t kVarint = 0, kEightBytes = 1, kLength = 2, kFourBytes = 5;

void put_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}
void put_key(std::string& to, uint64_t field, uint64_t kind) { put_varint(to, field << 3 | kind); }

template <class Bits>
void put_fixed(std::string& to, Bits bits) {
  for (size_t i = 0; i < sizeof(Bits); ++i) to += static_cast<char>(bits >> (8 * i));
}

void put_text(std::string& to, uint64_t field, const std::string& text) {
  put_key(to, field, kLength);
  put_varint(to, text.size());
  to += text;
}

// Event: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5 (Summary).
std::string event(double wall_time, int64_t step) {
  std::string text;
  put_key(text, 1, kEightBytes);
  put_fixed(text, std::bit_cast<uint64_t>(wall_time));
  put_key(text, 2, kVarint);
  put_varint(text, static_cast<uint64_t>(step));
  return text;
}

// So that a record of checksums has no checksum of zero (tensorflow/core/lib/hash/crc32c.h).
uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace

EventFile::EventFile(const std::filesystem::path& path, uint64_t keep)
    : path_(path), stream_(open_for_append(path, keep)), size_(keep) {
  if (size_ > 0) return;
  std::string first = event(0, 0);
  put_text(first, 3, "brain.Event:2");
  record(first);
}

void EventFile::scalar(const std::string& tag, int64_t step, double value, double seconds_since_1970) {
  std::string summary_value;  // Summary.Value: tag = 1 (string), simple_value = 2 (float)
  put_text(summary_value, 1, tag);
  put_key(summary_value, 2, kFourBytes);
  put_fixed(summary_value, std::bit_cast<uint32_t>(static_cast<float>(value)));
  std::string summary;  // Summary: value = 1 (repeated)
  put_text(summary, 1, summary_value);
  std::string text = event(seconds_since_1970, step);
  put_text(text, 5, summary);
  record(text);
}

void EventFile::record(const std::string& event) {
  std::string framed;
  put_fixed(framed, static_cast<uint64_t>(event.size()));
  put_fixed(framed, masked(crc32c(framed.data(), 8)));
  framed += event;
  put_fixed(framed, masked(crc32c(event.data(), event.size())));
  stream_ << framed;
  if (!stream_) throw Error(str(path_.string(), ": write failed: ", std::strerror(errno)));
  size_ += framed.size();
}

uint64_t EventFile::flush() {
  flush_to_disk(stream_, path_);
  return size_;
}

}  // namespace vitrail::train

// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "vitrail/onnx/protobuf_writer_internal.h"

namespace vitrail::onnx {
namespace {

enum WireType : uint64_t { kVarint = 0, kLengthDelimited = 2, kFixed32 = 5 };

uint64_t tag(uint32_t field, WireType type) { return static_cast<uint64_t>(field) << 3 | type; }

}  // namespace

void ProtobufWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);  // 7 bits a byte, the lowest first
  bytes_ += static_cast<char>(value);
}

void ProtobufWriter::integer(uint32_t field, int64_t value) {
  varint(tag(field, kVarint));
  varint(static_cast<uint64_t>(value));
}

void ProtobufWriter::real(uint32_t field, float value) {
  varint(tag(field, kFixed32));
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift);
}

void ProtobufWriter::text(uint32_t field, std::string_view bytes) {
  text_header(field, bytes.size());
  bytes_ += bytes;
}

void ProtobufWriter::text_header(uint32_t field, uint64_t size) {
  varint(tag(field, kLengthDelimited));
  varint(size);
}

}  // namespace vitrail::onnx

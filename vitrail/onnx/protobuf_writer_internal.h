// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes messages in the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding).
#include <cstdint>
#include <string>
#include <string_view>

namespace vitrail::onnx {

// Appends the fields of one message.  A field may be repeated.  A nested message is the bytes() of another writer.
class ProtobufWriter {
 public:
  void integer(uint32_t field, int64_t value);  // int32, int64 and enumerations
  void real(uint32_t field, float value);
  void text(uint32_t field, std::string_view bytes);  // strings, bytes and nested messages
  // The start of such a field whose `size` bytes the caller writes next.
  void text_header(uint32_t field, uint64_t size);
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  std::string bytes_;
};

}  // namespace vitrail::onnx

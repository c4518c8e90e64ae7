// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stream of zlib's decompression.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vitrail {

class Inflater {
 public:
  struct Step {
    int status;         // zlib's: Z_STREAM_END at the end of the stream
    uint64_t produced;  // bytes of content
  };

  // window_bits: as for inflateInit2().  Throws Error naming `where` if zlib cannot be started.
  Inflater(int window_bits, const std::string& where);
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Calls ::inflate() once, and removes the consumed bytes from the front of `compressed`.
  Step inflate(std::span<const std::byte>& compressed, std::span<std::byte> content);

  // Starts another stream.
  void reset() { ::inflateReset(&stream_); }

 private:
  z_stream stream_{};
};

}  // namespace vitrail

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One limit on the memory that all decoding threads of the process hold for pixels.
//
// A few bytes can announce an image of a gigabyte, so that many threads would exhaust the machine's memory.  The memory
// of an image is known from its header, and is reserved before any pixel is allocated.
#include <cstdint>
#include <string>

namespace vitrail::image {

// The bytes that a pixel needs while it is decoded: the image and one conversion of it, as by the EXIF orientation or a
// palette.
inline constexpr int64_t kDecodeBytesPerPixel = 6;

// The limit in bytes: until it is set, the smaller of 1 GiB and half of memory_limit().  Throws Error for a limit below
// 1.
void set_decode_memory(int64_t bytes);
int64_t decode_memory();

// While a scope exists, each image that its thread decodes waits until its memory fits below the limit together with
// that of other threads' scopes; an image that needs more than the limit waits until it is alone.  The scope holds the
// memory of the last image, so it must outlive that image's use, and its thread must not wait for other scopes.  While
// others wait, images that need at most a 32nd of the limit share an eighth of it beside it, and pass them.
// Decoding outside of a scope does not wait.  A thread has at most one scope.
//
// An image whose pixels need more than three quarters of memory_limit() is an Error wherever it is decoded.
class DecodeMemoryScope {
 public:
  DecodeMemoryScope();
  ~DecodeMemoryScope();
  DecodeMemoryScope(const DecodeMemoryScope&) = delete;
  DecodeMemoryScope& operator=(const DecodeMemoryScope&) = delete;

 private:
  friend void reserve_pixels(const std::string& where, int64_t width, int64_t height, int64_t extra_bytes_per_pixel);
  void reserve(int64_t bytes);  // instead of what it holds
  void release();

  int64_t held_ = 0;
  bool is_beside_ = false;  // what it holds is beside the limit
};

}  // namespace vitrail::image

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Motion JPEG: JPEG images one after the other, as of cameras, `ffmpeg -f mjpeg` and HTTP's multipart/x-mixed-replace.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vitrail::image {

struct MjpegFrame {
  std::vector<std::byte> bytes;  // a JPEG file
  std::string damage = {};       // what is wrong; empty: it is complete
};

// Splits a stream that arrives in pieces.  A frame ends with the EOI marker of its own: marker segments are skipped by
// their lengths, so that a thumbnail in one of them ends no frame.  What is between frames, such as the headers of
// multipart messages, is left out.
// Source: ITU-T T.81, annex B.
class MjpegSplitter {
 public:
  static constexpr size_t kMaxFrameBytes = size_t{1} << 26;

  void add(std::span<const std::byte> bytes);
  // The next frame that has ended; none: it needs more bytes.  A frame that is cut or longer than kMaxFrameBytes has
  // the damage and no bytes.
  std::optional<MjpegFrame> next();
  // Whether the stream is within a frame.
  bool within_frame() const { return state_ != State::between; }

 private:
  enum class State { between, marker, scan };
  enum class Step { incomplete, on, end, damage };  // what follows in a frame

  Step find_begin();
  Step skip_segment();
  Step skip_scan();
  Step damaged(const char* damage, size_t resume);
  size_t value(size_t at) const { return std::to_integer<size_t>(buffer_[at]); }

  std::vector<std::byte> buffer_;
  size_t begin_ = 0;   // first byte of the frame
  size_t at_ = 0;      // what is before it was looked at; it may be beyond the buffer
  size_t resume_ = 0;  // where to look for the next frame after damage
  State state_ = State::between;
  const char* damage_ = "";
};

}  // namespace vitrail::image

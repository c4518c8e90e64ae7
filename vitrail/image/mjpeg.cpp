// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/mjpeg.h"

#include <algorithm>

namespace vitrail::image {
namespace {

constexpr std::byte kPrefix{0xff};
constexpr size_t kStuffing = 0x00, kTemporary = 0x01, kFirstRestart = 0xd0, kLastRestart = 0xd7;
constexpr size_t kImageBegin = 0xd8, kImageEnd = 0xd9, kScanBegin = 0xda;  // SOI, EOI, SOS

bool is_restart(size_t marker) { return marker >= kFirstRestart && marker <= kLastRestart; }

}  // namespace

void MjpegSplitter::add(std::span<const std::byte> bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(begin_));
  at_ -= begin_;
  begin_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<MjpegFrame> MjpegSplitter::next() {
  while (true) {
    Step step = state_ == State::between ? find_begin() : state_ == State::marker ? skip_segment() : skip_scan();
    if (state_ != State::between && step != Step::damage && std::min(at_, buffer_.size()) - begin_ > kMaxFrameBytes)
      step = damaged("more than 64 MiB", std::min(at_, buffer_.size()));
    if (step == Step::incomplete) return std::nullopt;
    if (step == Step::on) continue;
    MjpegFrame frame;
    if (step == Step::damage) {
      frame.damage = damage_;
      at_ = resume_;
    } else {
      frame.bytes.assign(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
                         buffer_.begin() + static_cast<ptrdiff_t>(at_));
    }
    begin_ = at_;
    state_ = State::between;
    return frame;
  }
}

// SOI and the first byte of another marker.
MjpegSplitter::Step MjpegSplitter::find_begin() {
  constexpr std::byte kBegin[] = {kPrefix, std::byte{kImageBegin}, kPrefix};
  const auto found =
      std::search(buffer_.begin() + static_cast<ptrdiff_t>(at_), buffer_.end(), std::begin(kBegin), std::end(kBegin));
  if (found == buffer_.end()) {
    at_ = std::max(at_, buffer_.size() - std::min<size_t>(buffer_.size(), std::size(kBegin) - 1));
    begin_ = at_;
    return Step::incomplete;
  }
  begin_ = static_cast<size_t>(found - buffer_.begin());
  at_ = begin_ + 2;
  state_ = State::marker;
  return Step::on;
}

// A marker, with its segment if it has one.  What begins like a frame and is none may be in front of one.
MjpegSplitter::Step MjpegSplitter::skip_segment() {
  if (at_ + 1 >= buffer_.size()) return Step::incomplete;
  if (buffer_[at_] != kPrefix) return damaged("other bytes between its segments", begin_ + 2);
  const size_t marker = value(at_ + 1);
  if (marker == std::to_integer<size_t>(kPrefix)) {  // a fill byte
    ++at_;
    return Step::on;
  }
  if (marker == kStuffing || marker == kImageBegin) return damaged("other bytes between its segments", begin_ + 2);
  if (marker == kImageEnd || marker == kTemporary || is_restart(marker)) {
    at_ += 2;
    return marker == kImageEnd ? Step::end : Step::on;
  }
  if (at_ + 3 >= buffer_.size()) return Step::incomplete;
  const size_t length = value(at_ + 2) << 8 | value(at_ + 3);  // with its own two bytes
  if (length < 2) return damaged("a segment without a length", begin_ + 2);
  at_ += 2 + length;
  if (marker == kScanBegin) state_ = State::scan;
  return Step::on;
}

// Entropy-coded data, in which a prefix is followed by stuffing or is that of a restart marker.
MjpegSplitter::Step MjpegSplitter::skip_scan() {
  if (at_ >= buffer_.size()) return Step::incomplete;
  at_ = static_cast<size_t>(std::find(buffer_.begin() + static_cast<ptrdiff_t>(at_), buffer_.end(), kPrefix) -
                            buffer_.begin());
  if (at_ + 1 >= buffer_.size()) return Step::incomplete;
  const size_t marker = value(at_ + 1);
  if (marker == kImageBegin) return damaged("the beginning of the next one", at_);
  if (marker == kStuffing || is_restart(marker)) {
    at_ += 2;
  } else if (marker == std::to_integer<size_t>(kPrefix)) {
    ++at_;
  } else {
    state_ = State::marker;
  }
  return Step::on;
}

MjpegSplitter::Step MjpegSplitter::damaged(const char* damage, size_t resume) {
  damage_ = damage;
  resume_ = resume;
  return Step::damage;
}

}  // namespace vitrail::image

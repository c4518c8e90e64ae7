// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/mjpeg.h"

#include <gtest/gtest.h>

#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"

namespace vitrail::image {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A JPEG file of noise.
std::string jpeg_file(int seed) {
  Image image = make_image(24, 16, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(i * i * static_cast<size_t>(seed + 3) % 251);
  const std::vector<uint8_t> bytes = encode_jpeg(image, 90);
  return {bytes.begin(), bytes.end()};
}

std::string marker_segment(char marker, const std::string& content) {
  const size_t length = content.size() + 2;
  return std::string("\xff") + marker + static_cast<char>(length >> 8) + static_cast<char>(length & 0xff) + content;
}

// The file with a thumbnail in an APP1 segment.
std::string with_thumbnail(const std::string& file) {
  return file.substr(0, 2) + marker_segment('\xe1', "Exif" + jpeg_file(9)) + file.substr(2);
}

// The frames of a stream that arrives in pieces of so many bytes; damage in brackets.
std::vector<std::string> frames_of(const std::string& stream, size_t piece) {
  MjpegSplitter splitter;
  std::vector<std::string> frames;
  for (size_t at = 0; at < stream.size(); at += piece) {
    const std::string_view part = std::string_view(stream).substr(at, piece);
    splitter.add(std::as_bytes(std::span(part)));
    while (const auto frame = splitter.next())
      frames.push_back(frame->damage.empty() ? text_of(frame->bytes) : "[" + frame->damage + "]");
  }
  if (splitter.within_frame()) frames.emplace_back("[within]");
  return frames;
}

void expect_frames(const std::string& stream, const std::vector<std::string>& frames) {
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{1000}, stream.size()})
    EXPECT_EQ(frames_of(stream, piece) == frames, true)
        << "in pieces of " << piece << " bytes: " << frames_of(stream, piece).size() << " frames";
}

TEST(Mjpeg, FramesAreTheFilesOfTheStream) {
  expect_frames(jpeg_file(1) + jpeg_file(2) + jpeg_file(3), {jpeg_file(1), jpeg_file(2), jpeg_file(3)});
}

TEST(Mjpeg, AThumbnailEndsNoFrame) {
  const std::string file = with_thumbnail(jpeg_file(1));
  expect_frames(file + file, {file, file});
}

TEST(Mjpeg, FillBytesAndRestartMarkersAreOfTheFrame) {
  const std::string file = jpeg_file(1);
  const std::string filled = file.substr(0, 2) + "\xff\xff" + file.substr(2);
  const std::string restarts = file.substr(0, file.size() - 2) + "\xff\xd0" + "ab" + "\xff\xd7\xff\xff\xd9";
  expect_frames(filled + restarts + file, {filled, restarts, file});
}

TEST(Mjpeg, WhatIsBetweenFramesIsLeftOut) {
  const std::string part = "\r\n--boundary\r\nContent-Type: image/jpeg\r\n\r\n";
  const std::string noise = std::string("\xff\xd8\x00\xff\xd9\xff", 6);
  expect_frames(part + jpeg_file(1) + noise + jpeg_file(2) + part, {jpeg_file(1), jpeg_file(2)});
}

TEST(Mjpeg, ACutFrameIsDamagedAndTheNextOneIsNot) {
  const std::string file = jpeg_file(1), cut = file.substr(0, file.size() - 9);
  expect_frames(cut + jpeg_file(2), {"[the beginning of the next one]", jpeg_file(2)});
  expect_frames(jpeg_file(2) + cut, {jpeg_file(2), "[within]"});
  const std::string begun = file.substr(0, 20);  // within its first segments
  const std::vector<std::string> frames = frames_of(begun + jpeg_file(2) + jpeg_file(3), 7);
  EXPECT_TRUE(frames.front().starts_with("[")) << frames.front();
  EXPECT_EQ(frames.back(), jpeg_file(3));
}

// A length could make bytes of the following frames a part of it.
TEST(Mjpeg, WhatBeginsLikeAFrameHidesNone) {
  const std::string begun = "\xff\xd8\xff\xe0\xff\xff";
  std::string stream = begun;
  for (int i = 0; stream.size() < 70'000; ++i) stream += jpeg_file(i % 5);
  const std::vector<std::string> frames = frames_of(stream, 4096);
  ASSERT_GT(frames.size(), 60U);
  EXPECT_EQ(frames[0], "[other bytes between its segments]");
  for (size_t i = 1; i < frames.size(); ++i) EXPECT_EQ(frames[i] == jpeg_file(static_cast<int>(i - 1) % 5), true) << i;
}

TEST(Mjpeg, AnEndlessFrameEnds) {
  MjpegSplitter splitter;
  const std::string file = jpeg_file(1);
  const std::string_view begin = std::string_view(file).substr(0, file.size() - 2);
  splitter.add(std::as_bytes(std::span(begin)));
  const std::vector<std::byte> block(size_t{1} << 20);
  size_t damaged = 0;
  for (size_t i = 0; i < 70; ++i) {
    splitter.add(block);
    while (const auto frame = splitter.next()) damaged += frame->damage == "more than 64 MiB" ? 1 : 0;
  }
  EXPECT_EQ(damaged, 1U);
  splitter.add(std::as_bytes(std::span(file)));
  const auto next = splitter.next();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(text_of(next->bytes), file);
}

}  // namespace
}  // namespace vitrail::image

// SPDX-License-Identifier: Apache-2.0
// Expected bytes: the examples of protobuf.dev/programming-guides/encoding, and protoc's for the others.
#include "vitrail/onnx/protobuf_writer_internal.h"

#include <gtest/gtest.h>

namespace vitrail::onnx {
namespace {

std::string bytes(std::initializer_list<int> values) { return {values.begin(), values.end()}; }

TEST(ProtobufWriter, IntegersAreVarintsOfSevenBits) {
  ProtobufWriter out;
  out.integer(1, 150);
  EXPECT_EQ(out.bytes(), bytes({0x08, 0x96, 0x01}));
  out.integer(20, 127);
  EXPECT_EQ(out.bytes().substr(3), bytes({0xa0, 0x01, 0x7f}));
}

TEST(ProtobufWriter, NegativeIntegersTakeTenBytes) {
  ProtobufWriter out;
  out.integer(1, -1);
  EXPECT_EQ(out.bytes(), bytes({0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
}

TEST(ProtobufWriter, TextHasItsLengthInFront) {
  ProtobufWriter out;
  out.text(2, "testing");
  EXPECT_EQ(out.bytes(), bytes({0x12, 0x07}) + "testing");
  ProtobufWriter inner, outer;
  inner.integer(1, 150);
  outer.text(3, inner.bytes());
  EXPECT_EQ(outer.bytes(), bytes({0x1a, 0x03, 0x08, 0x96, 0x01}));
}

TEST(ProtobufWriter, HeaderIsTheStartOfText) {
  ProtobufWriter header, whole;
  header.text_header(9, 300);
  whole.text(9, std::string(300, 'x'));
  EXPECT_EQ(header.bytes() + std::string(300, 'x'), whole.bytes());
}

TEST(ProtobufWriter, RealsAreLittleEndianSingles) {
  ProtobufWriter out;
  out.real(2, 1.5f);
  EXPECT_EQ(out.bytes(), bytes({0x15, 0x00, 0x00, 0xc0, 0x3f}));
}

}  // namespace
}  // namespace vitrail::onnx

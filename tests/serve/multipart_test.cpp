// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/serve/multipart_internal.h"

namespace vitrail::serve {
namespace {

using testing::contains;
using testing::error_of;

const std::string kType = "multipart/form-data; boundary=XX";

std::string part(const std::string& disposition, const std::string& content) {
  return "--XX\r\nContent-Disposition: form-data" + disposition + "\r\n\r\n" + content + "\r\n";
}

TEST(Multipart, PartsHaveTheirNamesAndTheirContentByteForByte) {
  const std::string body = part("; name=\"top\"", "3") + part("; name=\"image\"; filename=\"a.png\"", "\r\n--X\r\n") +
                           part("; name=\"empty\"", "") + "--XX--\r\n";
  const std::vector<Part> parts = parse_multipart(body, kType, 3);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].name, "top");
  EXPECT_EQ(parts[0].filename, "");
  EXPECT_EQ(parts[0].content, "3");
  EXPECT_EQ(parts[1].name, "image");
  EXPECT_EQ(parts[1].filename, "a.png");
  EXPECT_EQ(parts[1].content, "\r\n--X\r\n");
  EXPECT_EQ(parts[2].name, "empty");
  EXPECT_EQ(parts[2].content, "");
  EXPECT_TRUE(contains(error_of([&] { parse_multipart(body, kType, 2); }), "at most 2 parts, got more"));
}

TEST(Multipart, HeadersAreReadAsRfc7578Writes) {
  const auto one = [](const std::string& headers) {
    const std::string body = "a preamble\r\n--XX\r\n" + headers + "\r\n\r\nv\r\n--XX--an epilogue";
    return parse_multipart(body, "multipart/form-data; charset=utf-8; Boundary=\"XX\"", 1).at(0);
  };
  const Part plain = one("content-type: text/plain\r\nCONTENT-DISPOSITION: form-data; NAME=a; FileName=b.png");
  EXPECT_EQ(plain.name, "a");
  EXPECT_EQ(plain.filename, "b.png");
  const Part escaped = one("Content-Disposition: form-data; filename=\"a\\\"b\\\\c;name=x.png\"; name=\"n\"\r\nX: y");
  EXPECT_EQ(escaped.name, "n");
  EXPECT_EQ(escaped.filename, "a\"b\\c;name=x.png");
  EXPECT_EQ(one("Content-Disposition: form-data; name=\"\"").name, "");
  EXPECT_EQ(one("Content-Disposition: form-data").name, "");
}

TEST(Multipart, DamagedBodiesAreErrors) {
  const std::string good = part("; name=\"a\"", "v") + "--XX--";
  EXPECT_EQ(parse_multipart(good, kType, 1).size(), 1U);
  EXPECT_TRUE(parse_multipart("--XX--", kType, 1).empty());
  const auto fails = [](const std::string& body, const std::string& type, const char* message) {
    const std::string got = error_of([&] { parse_multipart(body, type, 9); });
    EXPECT_TRUE(contains(got, message)) << got;
  };
  fails(good, "multipart/form-data", "no boundary of 1 to 70");
  fails(good, "multipart/form-data; boundary=", "no boundary of 1 to 70");
  fails(good, "multipart/form-data; boundary=" + std::string(71, 'X'), "no boundary of 1 to 70");
  fails("", kType, "no boundary in the body");
  fails("x--XX\r\n", kType, "no boundary in the body");
  fails(part("; name=\"a\"", "v"), kType, "no boundary at the end");
  fails("--XX", kType, "other characters after a boundary");
  fails(part("; name=\"a\"", "v") + "--XXY\r\n", kType, "other characters after a boundary");
  fails("--XX\r\nX: y\r\n\r\nv\r\n--XX--", kType, "without Content-Disposition");
  fails("--XX\r\nContent-Disposition: form-data\r\nv\r\n--XX--", kType, "without headers");
  const std::string long_boundary(70, 'b');
  EXPECT_TRUE(parse_multipart("--" + long_boundary + "--", "x; boundary=" + long_boundary, 1).empty());
}

// Headers of up to 8 KiB.
TEST(Multipart, HeadersOfAPartHaveALimit) {
  const std::string disposition = "Content-Disposition: form-data; name=\"a\"\r\nX: ";
  const auto body = [&](size_t bytes) {
    return "--XX\r\n" + disposition + std::string(bytes - disposition.size(), 'x') + "\r\n\r\nv\r\n--XX--";
  };
  EXPECT_EQ(parse_multipart(body(8192), kType, 1).size(), 1U);
  EXPECT_THROW(parse_multipart(body(8193), kType, 1), Error);
}

TEST(Multipart, RefusalsSayWhatIsDamaged) {
  const auto refusal = [](const std::string& body, const std::string& type, size_t parts = 9) {
    return error_of([&] { parse_multipart(body, type, parts); });
  };
  const std::string damaged = "multipart: expected parts between boundaries, got ";
  EXPECT_EQ(refusal("", "multipart/form-data"), damaged + "no boundary of 1 to 70 characters");
  EXPECT_EQ(refusal("x", kType), damaged + "no boundary in the body");
  EXPECT_EQ(refusal("--XX\r\nabc", kType), damaged + "no boundary at the end");
  EXPECT_EQ(refusal("--XX abc", kType), damaged + "other characters after a boundary");
  EXPECT_EQ(refusal("--XX\r\na: b\r\n\r\n\r\n--XX--", kType), damaged + "a part without Content-Disposition");
  EXPECT_EQ(refusal("--XX\r\nabc\r\n--XX--", kType), damaged + "a part without headers");
  EXPECT_ERROR(refusal(part("", "a") + part("", "b") + "--XX--", kType, 1), "multipart", "more");
}

TEST(Multipart, ParametersMayFollowEachOtherWithSpaces) {
  const std::string body =
      "--a b\r\nContent-Disposition:form-data ; x=y ;name= ; filename=\"\\\"\"\r\n\r\n1\r\n--a b--";
  const std::vector<Part> parts = parse_multipart(body, "multipart/form-data;x=\"boundary=z\" ; boundary=\"a b\"", 1);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].name, "");
  EXPECT_EQ(parts[0].filename, "\"");
  EXPECT_EQ(parts[0].content, "1");
}

}  // namespace
}  // namespace vitrail::serve

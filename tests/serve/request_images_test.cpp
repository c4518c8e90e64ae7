// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/request_images_internal.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/base64_internal.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {
namespace {

using testing::contains;
using testing::error_of;

const std::string kPng = "\x89PNG\r\n\x1a\n and more";

HttpRequest request_of(const std::string& type, const std::string& body) {
  return {"POST", "/", {{"content-type", type}}, body};
}

// The images of a request, or the status of its error.
struct Outcome {
  RequestImages images;
  RequestOptions options;
  int status = 200;
};
Outcome outcome_of(HttpRequest request, const Limits& limits = {}) {
  Outcome outcome;
  try {
    outcome.images = take_images(request, limits, outcome.options);
  } catch (const HttpError& error) {
    outcome.status = error.status();
  } catch (const Error&) {
    outcome.status = 400;
  }
  return outcome;
}

TEST(RequestImages, TheBodyIsAnImageByItsTypeOrItsFirstBytes) {
  for (const char* type :
       {"image/png", "IMAGE/PNG", "Image/x; q=1", "", "application/octet-stream", "APPLICATION/OCTET-STREAM"}) {
    const Outcome outcome = outcome_of(request_of(type, "anything"));
    ASSERT_EQ(outcome.status, 200) << type;
    EXPECT_TRUE(outcome.images.single);
    ASSERT_EQ(outcome.images.images.size(), 1U);
    EXPECT_EQ(outcome.images.images[0].name, "-");
    EXPECT_EQ(outcome.images.images[0].bytes, "anything");
  }
  EXPECT_EQ(outcome_of(request_of("application/x-www-form-urlencoded", kPng)).status, 200);  // as curl says
  EXPECT_EQ(outcome_of(request_of("application/x-www-form-urlencoded", "a=b")).status, 415);
  EXPECT_EQ(outcome_of(request_of("text/plain", "text")).status, 415);
  EXPECT_EQ(outcome_of(request_of("image/png", "")).status, 400);
}

TEST(RequestImages, JsonHasOneImageOrAList) {
  const auto json = [](const std::string& body, const Limits& limits = {}) {
    return outcome_of(request_of("Application/JSON; charset=utf-8", body), limits);
  };
  Outcome one = json(R"({"image": "data:image/png;base64,QUI=", "top": 3})");
  ASSERT_EQ(one.images.images.size(), 1U);
  EXPECT_TRUE(one.images.single);
  EXPECT_EQ(one.images.images[0].name, "-");
  EXPECT_EQ(one.images.images[0].bytes, "AB");
  EXPECT_EQ(one.options.text("top"), "3");
  EXPECT_EQ(one.options.text("image"), std::nullopt);
  Outcome two = json(R"({"images": ["data:;base64,QUI=", "data:;base64,QUJD"], "exif": true})");
  ASSERT_EQ(two.images.images.size(), 2U);
  EXPECT_FALSE(two.images.single);
  EXPECT_EQ(two.images.images[1].name, "image 1");
  EXPECT_EQ(two.images.images[1].bytes, "ABC");
  EXPECT_TRUE(two.options.flag("exif"));
  const std::string list = R"({"images": ["data:;base64,QUI=", "data:;base64,QUI="]})";
  EXPECT_EQ(json(list, {.images = 2}).status, 200);
  EXPECT_EQ(json(list, {.images = 1}).status, 413);
  for (const char* body : {R"({"images": []})", R"({"images": "data:;base64,QUI="})", R"({"images": [1]})", "{}", "[]",
                           R"({"image": ["data:;base64,QUI="]})", R"({"images": ["http://host/a.png"]})", "{"}) {
    EXPECT_EQ(json(body).status, 400) << body;
  }
}

TEST(RequestImages, FilesOfAFormAreImagesAndFieldsAreOptions) {
  const auto field = [](const std::string& disposition, const std::string& content) {
    return "--XX\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + content + "\r\n";
  };
  const std::string body = field("name=\"a\"; filename=\"a.png\"", "first") + field("name=\"top\"", "3") +
                           field("name=\"image\"", "second") + field("name=\"mask\"; filename=\"m.png\"", "mask") +
                           field("name=\"b\"; filename=\"b.png\"", "third");
  const std::string type = "multipart/form-data; boundary=XX";
  Outcome outcome = outcome_of(request_of(type, body + "--XX--"));
  ASSERT_EQ(outcome.status, 200);
  EXPECT_FALSE(outcome.images.single);
  ASSERT_EQ(outcome.images.images.size(), 3U);
  EXPECT_EQ(outcome.images.images[0].name, "a.png");
  EXPECT_EQ(outcome.images.images[1].name, "image 1");
  EXPECT_EQ(outcome.images.images[1].bytes, "second");
  EXPECT_EQ(outcome.images.images[2].name, "b.png");
  EXPECT_EQ(outcome.options.text("top"), "3");
  EXPECT_EQ(outcome.options.text("mask"), "mask");
  EXPECT_EQ(outcome_of(request_of(type, body + "--XX--"), {.images = 3}).status, 200);
  EXPECT_EQ(outcome_of(request_of(type, body + "--XX--"), {.images = 2}).status, 413);
  EXPECT_EQ(outcome_of(request_of(type, field("name=\"top\"", "3") + "--XX--")).status, 400);  // no image
  // One image and as many other fields as a form may have.
  std::string fields;
  for (int i = 0; i < 64; ++i) fields += field("name=\"label\"", "x");
  const std::string image = field("name=\"a\"; filename=\"a.png\"", "first");
  EXPECT_EQ(outcome_of(request_of(type, image + fields + "--XX--"), {.images = 1}).status, 200);
  EXPECT_EQ(outcome_of(request_of(type, image + fields + image + "--XX--"), {.images = 1}).status, 400);
}

TEST(RequestImages, ADataUriIsInBase64) {
  EXPECT_EQ(from_data_uri("data:image/png;base64,QUJD", "a"), "ABC");
  EXPECT_EQ(from_data_uri("data:;base64,", "a"), "");
  for (const char* uri : {"", "data:", "data:image/png,QUJD", "image/png;base64,QUJD", "http://a/b",
                          "data:;base64;x,QUJD", "data:;base64,Q!"}) {
    EXPECT_TRUE(error_of([&] { from_data_uri(uri, "photo"); }).starts_with("photo: expected")) << uri;
  }
}

TEST(RequestImages, AnImageOfJsonIsBase64InOneOfItsForms) {
  const auto image = [](const std::string& value) {
    RequestOptions options;
    HttpRequest request = request_of("application/json", "{\"images\": [" + value + "]}");
    return take_images(request, {}, options).images.at(0).bytes;
  };
  for (const char* value : {R"("data:;base64,QUJD")", R"("QUJD")", R"("QU\r\nJD\n")", R"("data:;base64,QUJ\nD")",
                            R"({"image_url": "QUJD"})", R"({"type": "image_url", "image_url": {"url": "QUJD"}})"})
    EXPECT_EQ(image(value), "ABC") << value;
}

TEST(RequestImages, AMediaTypeIsInLowerCaseWithoutParameters) {
  EXPECT_EQ(media_type(""), "");
  EXPECT_EQ(media_type("Text/HTML"), "text/html");
  EXPECT_EQ(media_type("Text/HTML;charset=UTF-8"), "text/html");
  EXPECT_EQ(media_type("Text/HTML ; charset=UTF-8"), "text/html");
}

TEST(RequestImages, RefusalsSayWhatIsExpected) {
  const auto refusal = [](HttpRequest request, const Limits& limits = {}) {
    RequestOptions options;
    return error_of([&] { take_images(request, limits, options); });
  };
  const std::string json = "application/json";
  EXPECT_EQ(refusal(request_of("", "")), "an empty body: send an image, a form or JSON");
  EXPECT_ERROR(refusal(request_of("Text/Plain; charset=x", "text")), "Content-Type", "text/plain");
  EXPECT_EQ(refusal(request_of(json, R"({"images": []})")), "no image in the request");
  EXPECT_EQ(refusal(request_of(json, R"({"images": ["a", "b", "c"]})"), {.images = 2}),
            "at most 2 images in a request, got 3");
  EXPECT_ERROR(refusal(request_of(json, R"({"images": "a"})")), "images", "string");
  EXPECT_ERROR(refusal(request_of(json, R"({"images": ["data:;base64,QUI=", 1]})")), "image 1", "number");
  EXPECT_ERROR(refusal(request_of(json, R"({"image": 1})")), "-", "number");
  EXPECT_ERROR(refusal(request_of(json, R"({"image": "http://host/a/long/path.png"})")), "-",
               "http://host/a/long/path.");
  EXPECT_ERROR(refusal(request_of(json, "{}")), "body", "none");
  EXPECT_ERROR(refusal(request_of(json, R"({"image": "data:;base64,QUI=", "top": null})")), "top", "null");
  EXPECT_EQ(refusal(request_of(json, "[[[1]]]"), {.json_depth = 2}), "JSON that is nested more than 2 levels deep");
}

TEST(RequestImages, ABodyIsDecompressedByItsEncoding) {
  const auto outcome = [](const std::string& encoding, const std::string& body, const Limits& limits = {}) {
    HttpRequest request{"POST", "/", {}, body};
    if (!encoding.empty()) request.headers.emplace_back("content-encoding", encoding);
    try {
      const bool changed = decompress_body(request, limits);
      return (changed ? "changed " : "same ") + request.body;
    } catch (const HttpError& error) {
      return str(error.status(), " ", error.what());
    }
  };
  const std::string stored(
      "\x01\x03\x00\xfc\xff"
      "abc",
      8);  // a stored block of deflate (RFC 1951)
  EXPECT_EQ(outcome("", "abc"), "same abc");
  EXPECT_EQ(outcome("identity", "abc"), "same abc");
  EXPECT_EQ(outcome("Identity", "abc"), "same abc");
  EXPECT_EQ(outcome("deflate", stored), "changed abc");
  EXPECT_EQ(outcome("DEFLATE", stored), "changed abc");
  EXPECT_EQ(outcome("deflate", stored, {.body_bytes = 3}), "changed abc");
  EXPECT_TRUE(outcome("deflate", stored, {.body_bytes = 2}).starts_with("413 body: expected at most 2 bytes"));
  EXPECT_TRUE(outcome("deflate", stored.substr(0, 6)).starts_with("400 body: "));
  EXPECT_TRUE(outcome("gzip", stored).starts_with("400 body: "));
  EXPECT_EQ(outcome("br", "abc"), "415 Content-Encoding: expected gzip, deflate or identity");
}

}  // namespace
}  // namespace vitrail::serve

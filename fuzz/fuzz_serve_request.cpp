// SPDX-License-Identifier: Apache-2.0
// Fuzzes what a server reads of a request: the target, forms, JSON with data URIs, compressed bodies and tensors. Every
// input must give values or a vitrail::Error.  Lines: target, Content-Type, Content-Encoding,
// Inference-Header-Content-Length; then the body.
#include "fuzz/inputs.h"
#include "vitrail/serve/inference_request_internal.h"
#include "vitrail/serve/request_images_internal.h"
#include "vitrail/tasks/segment/segment_request_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vitrail;
  std::string_view text = fuzz::text_of(data, size);
  serve::HttpRequest request{.method = "POST", .target = fuzz::cut(text, '\n'), .headers = {}, .body = {}};
  for (const char* name : {"content-type", "content-encoding", "inference-header-content-length"})
    request.headers.emplace_back(name, fuzz::cut(text, '\n'));
  request.body = text;
  const serve::Limits limits{.body_bytes = 1 << 20, .images = 16};
  serve::RequestOptions options;
  fuzz::attempt([&] { options.add(serve::parse_target(request.target).query); });
  fuzz::attempt([&] { serve::decompress_body(request, limits); });
  fuzz::attempt([&] { serve::parse_inference(request, limits); });
  fuzz::attempt([&] { serve::take_images(request, limits, options); });
  fuzz::attempt([&] { tasks::take_segment_request(options, 1 << 20); });
  int64_t top = 5;
  std::vector<int64_t> layers;
  double opacity = 0.5;
  fuzz::attempt([&] { options.integer("top", top, 1, 1000); });
  fuzz::attempt([&] { options.integers("layer", layers); });
  fuzz::attempt([&] { options.number("opacity", opacity, {0, 1}); });
  fuzz::attempt([&] { options.flag("exif"); });
  fuzz::attempt([&] { options.require_all_taken(); });
  return 0;
}

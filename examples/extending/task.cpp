// SPDX-License-Identifier: Apache-2.0
// A task on all doors at once: C++, the C interface (and with it Python's Model.run) and the server.  In vitrail
// itself, the folder would be vitrail/tasks/mean_color/, and VITRAIL_TASKS would name it.
//
//   example_extending_task models/cifar10-vit
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "examples/extending/toy_task/mean_color.h"
#include "vitrail/c_api.h"
#include "vitrail/image/encode.h"
#include "vitrail/serve/server.h"
#include "vitrail/tasks/run.h"

namespace {

using namespace vitrail;

void require(bool holds, const std::string& claim) {
  if (!holds) throw std::runtime_error("not true: " + claim);
}

// Red above, blue below.
image::Image flag() {
  image::Image image = image::make_image(8, 8, 3);
  for (int64_t y = 0; y < 8; ++y)
    for (int64_t x = 0; x < 8; ++x) image.row(y)[3 * x + (y < 4 ? 0 : 2)] = 255;
  return image;
}

std::string by_library(const std::string& path) {
  const auto model = tasks::open_model(path);
  tasks::RequestOptions options;
  options.add("grid", "2");
  const auto request = tasks::find_task("mean-color", *model)->request(*model, options, {.model = path});
  std::vector<tasks::Item> items(1);
  items[0].name = "image 0";
  items[0].photo = flag();
  tasks::run(*model, *request, items);
  require(request->array(items[0], 0).shape() == Shape{2, 2, 3}, "an array has the shape of outputs()");
  return request->json(items[0]);
}

std::string by_c(const std::string& path) {
  const image::Image photo = flag();
  vitrail_model* model = nullptr;
  vitrail_image* image = nullptr;
  vitrail_text* text = nullptr;
  const char* const options[] = {"grid=2"};
  require(!vitrail_model_open(path.c_str(), nullptr, &model), "the model opens");
  require(!vitrail_image_view(photo.pixels.data(), photo.pixels.size(), 8, 8, 0, VITRAIL_RGB, &image),
          "the view opens");
  require(!vitrail_run(model, "mean-color", &image, 1, options, 1, &text), "the task runs");
  const std::string json = vitrail_text_data(text);
  vitrail_text_free(text);
  vitrail_image_free(image);
  vitrail_model_free(model);
  return json;
}

std::string by_server(const std::string& path) {
  serve::Server server({.models = {{"model", path}}, .port = 0});
  server.load();
  const std::vector<uint8_t> png = image::encode_png(flag());
  const std::string request = "POST /v1/mean-color?grid=2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
                              ("Content-Type: image/png\r\nContent-Length: " + std::to_string(png.size())) +
                              "\r\n\r\n" + std::string(png.begin(), png.end());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  require(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "the server listens");
  require(::send(client, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size()), "it takes all");
  std::string response;
  char part[4096];
  for (ssize_t count; (count = ::recv(client, part, sizeof part, 0)) > 0;)
    response.append(part, static_cast<size_t>(count));
  ::close(client);
  server.drain();
  return response.substr(response.find("\r\n\r\n") + 4);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    require(argc == 2, "the argument is a model");
    tasks::add_task(extending::mean_color_task());
    const std::string json = by_library(argv[1]);
    std::puts(json.c_str());
    require(by_c(argv[1]) == "[" + json + "]", "the C interface gives the same");
    require(by_server(argv[1]).find(json.substr(json.find("\"shape\""))) != std::string::npos,
            "and so does the server");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

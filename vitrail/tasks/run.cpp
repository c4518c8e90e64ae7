// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/run.h"

namespace vitrail::tasks {
namespace {

void run_passes(const LoadedModel& model, const std::vector<infer::Request>& passes, Item& item) {
  const Tensor input = model.input_of(item.photo).unsqueeze(0);
  for (const infer::Request& pass : passes) {
    std::vector<Tensor>& results = item.results.emplace_back();
    for (const Tensor& rows : model.run(input, pass)) results.push_back(rows.select(0, 0).contiguous());
  }
}

}  // namespace

void run(const LoadedModel& model, Request& request, std::vector<Item>& items) {
  request.check(std::ssize(items));
  if (request.texts() > 0) request.prepare({});
  const std::vector<infer::Request> passes = request.passes();
  std::vector<Item*> all;
  for (Item& item : items) {
    item.width = item.photo.width;
    item.height = item.photo.height;
    if (passes.empty()) {
      request.compute(item, model.encode(item.photo).get(), {});
    } else {
      run_passes(model, passes, item);
    }
    all.push_back(&item);
  }
  request.finish(all);
}

}  // namespace vitrail::tasks

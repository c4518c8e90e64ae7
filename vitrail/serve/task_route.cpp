// SPDX-License-Identifier: Apache-2.0
// POST /v1/TASK: images in, the command line's JSON or a rendered image out.
#include "vitrail/serve/image_job_internal.h"
#include "vitrail/serve/png_response_internal.h"
#include "vitrail/serve/routes_internal.h"
#include "vitrail/serve/text_task_internal.h"

namespace vitrail::serve {
namespace {

HttpResponse render_response(const tasks::Request& request, const ImageOutcome& outcome) {
  require_result(outcome);
  return png_response(request.render_png(outcome.item));
}

}  // namespace

void task_route(const CallPointer& call) {
  RequestOptions& options = call->options();
  RequestImages input = take_images(call->request(), call->engine().options.limits, options, call->parse_budget());
  ImageJob job{.model = call->take_model(call->route()), .request = {}, .decode = {.apply_exif = options.flag("exif")}};
  const tasks::Task& task = *tasks::find_task(call->route(), job.model->loaded());
  job.render = task.can_render && wants_png(*call, input.single);
  const tasks::Setting setting{
      .model = job.model->name(), .render = job.render, .max_pixels = call->engine().options.limits.pixels};
  job.request = task.request(job.model->loaded(), options, setting);
  options.require_all_taken();
  job.request->check(std::ssize(input.images));
  job.finish = [request = job.request, render = job.render,
                single = input.single](std::vector<ImageOutcome>& outcomes) {
    return render ? render_response(*request, outcomes.front()) : list_response(*request, outcomes, single);
  };
  const int64_t texts = job.request->texts();
  if (texts == 0) return start_images(call, std::move(input.images), std::move(job));
  run_text_task(call, static_cast<size_t>(texts),
                [call, job, images = std::move(input.images)](const ProgressCallback& progress) mutable {
                  job.request->prepare(progress);
                  start_images(call, std::move(images), std::move(job));
                });
}

}  // namespace vitrail::serve

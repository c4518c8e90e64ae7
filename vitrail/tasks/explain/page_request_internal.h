// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests whose result is a learning page.
#include "vitrail/explain/explain.h"
#include "vitrail/tasks/task.h"

namespace vitrail::tasks {

class PageRequest : public Request {
 public:
  bool keeps_photo() const override { return true; }
  bool is_long() const override { return true; }
  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& progress) const override;
  std::string json(const Item& item) const override;  // {"path", "bytes", "left_out", "claims"}
  std::vector<uint8_t> file(const Item& item, const std::string& kind) const override;

 private:
  virtual explain::LearningPage page(const Item& item, const ProgressCallback& progress) const = 0;
};

// The row with the file of all of them.
Task page_task(Task row);

}  // namespace vitrail::tasks

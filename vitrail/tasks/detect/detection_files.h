// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files of objects that other programs read.
#include <string>
#include <vector>

#include "vitrail/tasks/detect/detections.h"
#include "vitrail/tasks/task.h"

namespace vitrail::tasks {

// coco  COCO's list of results: category_id is the index of the class; image_id is the name of the image's file without
//       its extension, as a number if it is one, as those of COCO
// yolo  NAME.txt with a line "class x y width height score" for each object, in fractions of the image, to which boxes
//       are cut
// csv   a row for each object: image,label,index,score,x1,y1,x2,y2,track
// An object's identity in a video is "track_id" in COCO's results; without one the row's track is empty.
std::vector<FileKind> detection_file_kinds();

// The file of a kind, or what a joint one has of the image.
std::string detection_file(const std::string& kind, const Item& item, const Detections& detections);

}  // namespace vitrail::tasks

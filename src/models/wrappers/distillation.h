#pragma once
// A network that learns from another one: the table [model.teacher] of a recipe.
//
//   [model.teacher]
//   name = "lenet5"       # a network with its settings, as [model] has them; also members of an ensemble
//   members = 4
//   temperature = 2       # divides the scores of both before they are compared (Hinton et al. 2015)
//   weight = 0.9          # of what the teacher says in the loss; the labels have the rest
//   [model.init]          # its weights, trained before
//   from = "runs/ensemble"
//   rename = { "*" = "teacher.*" }
//
// The teacher's weights stay what they are; it answers as in a prediction, without dropout. The student alone is
// evaluated and answers.

#include "models/model.h"

namespace echelon::models {

struct TeacherSpec {
  double temperature = 2, weight = 0.9;
};
inline constexpr const char* teacher_prefix = "teacher.";

// Both for the same inputs and classes; BadInput if they have no classes.
std::unique_ptr<Model> distilled(std::unique_ptr<Model> student, std::unique_ptr<const Model> teacher,
                                 const TeacherSpec& spec);

}  // namespace echelon::models

// The models by name: see train/recipe/models.h.
#pragma once

#include "train/recipe/models.h"

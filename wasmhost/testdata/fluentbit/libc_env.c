// The battery with the functions that the host gives.
#define USE_ENV
#include "env.h"
#include "battery.h"

package router

// A Route takes the messages of its sources through a chain of filters to its
// destinations.
type Route struct {
	Name    string
	From    []string // names of sources
	Filters []Stage  // in order
	To      []string // names of destinations
}

// A Stage is a filter's place in a chain. Filters has one instance for each
// lane; a filter that keeps state has the same one in every lane and takes turns.
type Stage struct {
	Name    string
	Filters []Filter
}

type route struct{ Route }

"""What runs the course and is not taught: curriculum, generator, grader, programs and book tools."""

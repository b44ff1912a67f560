mod isolation;
